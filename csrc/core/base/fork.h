// Locks that a forked child never inherits from a thread that it does not have.
#pragma once

#include <pthread.h>

namespace tfrfast {

inline constexpr auto kNothingToMend = [] {};

// From now on fork() waits for the mutex that `mutex()` returns, and the child finds it free. In
// the child `mend()` is called first, under the lock. Call this once for each mutex.
template <auto mutex, auto mend = kNothingToMend>
int make_fork_wait_for() noexcept {
  return ::pthread_atfork([] { mutex().lock(); }, [] { mutex().unlock(); },
                          [] {
                            mend();
                            mutex().unlock();
                          });
}

}  // namespace tfrfast
