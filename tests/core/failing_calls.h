// System calls of the core that fail on a test's request. The linker puts these functions in front
// of the real calls (--wrap), so the core needs no hooks.
#pragma once

#include <string>

namespace tfrfast::testing {

// While the object lives, calls of `call` fail with `error` after the first `allowed` calls. `call`
// is "preadv", "pwrite", "pwritev", "fsync", "linkat", "rename", "fallocate" or "getpwuid_r". With
// error 0, pwritev writes one byte a call. Applies to all threads.
class FailingCall {
 public:
  FailingCall(const std::string& call, int allowed, int error);
  ~FailingCall();
  FailingCall(const FailingCall&) = delete;
  FailingCall& operator=(const FailingCall&) = delete;
  int calls() const;  // so far
};

// While the object lives, getpid() returns the present number, in forked children, too, as if each
// process were the first process of its container.
class SameProcessNumber {
 public:
  SameProcessNumber();
  ~SameProcessNumber();
  SameProcessNumber(const SameProcessNumber&) = delete;
  SameProcessNumber& operator=(const SameProcessNumber&) = delete;
};

// While the object lives, fstat() says that the file at `path` belongs to `owner`. One object at a
// time.
class PretendedOwner {
 public:
  PretendedOwner(const std::string& path, unsigned owner);
  ~PretendedOwner();
  PretendedOwner(const PretendedOwner&) = delete;
  PretendedOwner& operator=(const PretendedOwner&) = delete;
};

}  // namespace tfrfast::testing
