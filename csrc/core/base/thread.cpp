#include "core/base/thread.h"

#include <pthread.h>
#include <sys/mman.h>

#include <cerrno>
#include <csignal>
#include <exception>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "core/base/error.h"

namespace tfrfast {
namespace {

// Faults stay unblocked: a blocked fault kills the process without calling its handler.
sigset_t all_but_faults() noexcept {
  sigset_t signals;
  ::sigfillset(&signals);
  for (const int fault : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) {
    ::sigdelset(&signals, fault);
  }
  return signals;
}

// Blocks signals while a thread is started. The new thread inherits the mask, so no signal can
// reach the new thread in its first moment.
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

// Reserves address space for a new thread's first allocations, which must not fail. The thread has
// no heap yet, and releases the space right before the allocations.
class SpaceSetAside {
 public:
  SpaceSetAside() : begin_(::mmap(nullptr, kBytes, PROT_NONE, kFlags, -1, 0)) {
    if (begin_ == MAP_FAILED) throw std::system_error(errno, std::generic_category());
  }
  ~SpaceSetAside() { ::munmap(begin_, kBytes); }
  SpaceSetAside(const SpaceSetAside&) = delete;
  SpaceSetAside& operator=(const SpaceSetAside&) = delete;

 private:
  static constexpr std::size_t kBytes = 64 << 10;
  static constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS;

  void* const begin_;
};

}  // namespace

void prepare_to_throw() noexcept {
  (void)std::current_exception();  // initialises the thread's exception storage
}

std::thread start_thread(std::function<void()> work) {
  const SignalsBlocked while_it_starts;
  try {
    return std::thread(
        [work = std::move(work), space = std::make_unique<SpaceSetAside>()]() mutable {
          space = nullptr;
          prepare_to_throw();
          work();
        });
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
