#include "core/storage/fault_guard.h"

#include <pthread.h>
#include <ucontext.h>

#include <csignal>

#include <mutex>

namespace tfrfast {

thread_local constinit sigjmp_buf* detail::active_fault_guard = nullptr;

namespace {

struct sigaction previous_action;

// The signal that this thread handed on last. A handler that jumps out, as another copy of the
// core's does, leaves it behind.
struct HandedOn {
  const void* context = nullptr;
  const void* frame = nullptr;
  int rounds = 0;
};
thread_local constinit HandedOn handed_on TFRFAST_STATIC_TLS = {};
constexpr int kMaxRounds = 3;

// The process dies of the fault as if nobody had ever handled it: returning repeats the fault, and
// a signal that somebody sent is sent again.
void die_by_default(int signal_number, const siginfo_t* info) {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  ::sigaction(signal_number, &action, nullptr);
  if (info == nullptr || info->si_code <= 0) ::raise(signal_number);
}

void hand_on(int signal_number, siginfo_t* info, void* context) {
  // Handlers may be stacked in a circle: ours, another library's, ours again. Then the signal comes
  // back deeper in the stack, or raised anew; after a few rounds it has been reported and may kill.
  const void* frame = __builtin_frame_address(0);
  const bool came_back = context == handed_on.context && frame < handed_on.frame;
  const bool raised = info != nullptr && info->si_code <= 0;
  const int rounds = came_back || raised ? handed_on.rounds + 1 : 1;
  handed_on = {context, frame, rounds};
  if (rounds > kMaxRounds) return die_by_default(signal_number, info);
  if ((previous_action.sa_flags & SA_SIGINFO) != 0) {
    previous_action.sa_sigaction(signal_number, info, context);
  } else if (previous_action.sa_handler == SIG_DFL || previous_action.sa_handler == SIG_IGN) {
    die_by_default(signal_number, info);  // an ignored fault would repeat for ever
  } else {
    previous_action.sa_handler(signal_number);
  }
  handed_on = {};
}

// What the thread blocked before the signal; a handler that calls ours may block more meanwhile, as
// the thread sanitizer's does, and would never get to give it back.
void restore_signal_mask(void* context) {
  sigset_t mask = static_cast<ucontext_t*>(context)->uc_sigmask;
  ::sigdelset(&mask, SIGBUS);
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
}

void on_bus_error(int signal_number, siginfo_t* info, void* context) {
  // Whoever raised it, a guarded thread can only mean its mapping: `faulthandler` raises the signal
  // anew after its report, without the address.
  if (detail::active_fault_guard != nullptr) {
    restore_signal_mask(context);
    siglongjmp(*detail::active_fault_guard, 1);
  }
  hand_on(signal_number, info, context);
}

}  // namespace

void install_fault_guard() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action = {};
    action.sa_sigaction = on_bus_error;
    ::sigemptyset(&action.sa_mask);
    // NODEFER: the jump out of the handler leaves SIGBUS unblocked for the next fault.
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    ::sigaction(SIGBUS, &action, &previous_action);
  });
}

}  // namespace tfrfast
