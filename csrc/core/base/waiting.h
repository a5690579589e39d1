// Lets a thread's owner end a long wait, for example for a network.
#pragma once

namespace tfrfast {

// While a WaitCheck lives, waits on the thread that made it call check() about ten times a second.
// An exception from check() ends the wait. Only the innermost WaitCheck is called. Make it on the
// stack.
class WaitCheck {
 public:
  WaitCheck() noexcept;
  WaitCheck(const WaitCheck&) = delete;
  WaitCheck& operator=(const WaitCheck&) = delete;
  virtual void check() = 0;

 protected:
  ~WaitCheck();
  WaitCheck* outer() const noexcept { return outer_; }

 private:
  WaitCheck* const outer_;
};

// The calling thread's innermost check, or null.
WaitCheck* wait_check() noexcept;

}  // namespace tfrfast
