#include "core/base/waiting.h"

namespace tfrfast {
namespace {

thread_local constinit WaitCheck* innermost = nullptr;

}  // namespace

WaitCheck::WaitCheck() noexcept : outer_(innermost) {
  innermost = this;
}

WaitCheck::~WaitCheck() {
  innermost = outer_;
}

WaitCheck* wait_check() noexcept {
  return innermost;
}

}  // namespace tfrfast
