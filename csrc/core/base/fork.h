// Keeps a forked child from inheriting a lock that another thread holds.
#pragma once

#include <pthread.h>

namespace tfrfast {

inline constexpr auto kNothingToMend = [] {};

// From now on fork() waits for the mutex that `mutex()` returns, and the child finds the mutex
// unlocked. The child first calls `mend()` under the lock. Call once for each mutex.
template <auto mutex, auto mend = kNothingToMend>
int make_fork_wait_for() noexcept {
  return ::pthread_atfork([] { mutex().lock(); }, [] { mutex().unlock(); },
                          [] {
                            mend();
                            mutex().unlock();
                          });
}

}  // namespace tfrfast
