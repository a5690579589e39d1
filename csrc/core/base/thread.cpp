#include "core/base/thread.h"

#include <pthread.h>

#include <csignal>
#include <string>
#include <system_error>
#include <utility>

#include "core/base/error.h"

namespace tfrfast {
namespace {

// Faults stay unblocked: a blocked one would kill the process without a call of its handler.
sigset_t all_but_faults() noexcept {
  sigset_t signals;
  ::sigfillset(&signals);
  for (const int fault : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) {
    ::sigdelset(&signals, fault);
  }
  return signals;
}

// A new thread inherits what is blocked here, so it cannot take a signal in the moment before it
// could block signals itself.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    const sigset_t blocked = all_but_faults();
    ::pthread_sigmask(SIG_SETMASK, &blocked, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

std::thread start_thread(std::function<void()> work) {
  const SignalsBlocked while_it_starts;
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error& error) {
    throw Error(ErrorKind::io,
                "Starting a thread failed: " + error.code().message() +
                    ". Ask for fewer threads, or raise the limits on processes and memory "
                    "(`ulimit -u`, `ulimit -v`).",
                {}, error.code().value());
  }
}

void leave_signals_to_others() noexcept {
  const sigset_t blocked = all_but_faults();
  ::pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
}

}  // namespace tfrfast
