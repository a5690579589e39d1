// Long waits, for a network for example, that whoever is responsible for the thread may end.
#pragma once

namespace tfrfast {

// While it lives, waits on the thread that made it call check() about ten times a second. What
// check() throws ends the wait. The innermost one counts. Make it on the stack.
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

// The calling thread's check, or null.
WaitCheck* wait_check() noexcept;

}  // namespace tfrfast
