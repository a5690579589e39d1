// System calls of the core that fail when a test says so. The linker puts them in front of the real
// ones (--wrap), so the core has no hooks.
#pragma once

#include <string>

namespace tfrfast::testing {

// While it lives, the calls after the first `allowed` ones to `call` ("pwritev", "fsync", "linkat",
// "rename", "fallocate") fail with `error`; with error 0, pwritev writes one byte a call. All
// threads.
class FailingCall {
 public:
  FailingCall(const std::string& call, int allowed, int error);
  ~FailingCall();
  FailingCall(const FailingCall&) = delete;
  FailingCall& operator=(const FailingCall&) = delete;
  int calls() const;  // so far
};

}  // namespace tfrfast::testing
