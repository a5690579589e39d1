#include "core/storage/fault_guard.h"

#include <pthread.h>
#include <ucontext.h>

#include <csignal>

#include <mutex>

namespace tfrfast {

thread_local constinit sigjmp_buf* detail::active_fault_guard = nullptr;

namespace {

struct sigaction previous_action;

// The last signal that this thread handed on. Not cleared if a handler jumps out, as the handler of
// another copy of the core does.
struct HandedOn {
  const void* context = nullptr;
  const void* frame = nullptr;
  int rounds = 0;
};
thread_local constinit HandedOn handed_on TFRFAST_STATIC_TLS = {};
constexpr int kMaxRounds = 3;

// Makes the process die of the fault as if it had no handler. The fault repeats when this function
// returns. A signal that was sent is sent again.
void die_by_default(int signal_number, const siginfo_t* info) {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  ::sigaction(signal_number, &action, nullptr);
  if (info == nullptr || info->si_code <= 0) ::raise(signal_number);
}

void hand_on(int signal_number, siginfo_t* info, void* context) {
  // Handlers may call each other in a circle: ours, another library's, ours again. The signal then
  // comes back deeper in the stack, or is raised again. After a few rounds the fault has been
  // reported, and may end the process.
  const void* frame = __builtin_frame_address(0);
  const bool came_back = context == handed_on.context && frame < handed_on.frame;
  const bool raised = info != nullptr && info->si_code <= 0;
  const int rounds = came_back || raised ? handed_on.rounds + 1 : 1;
  handed_on = {context, frame, rounds};
  if (rounds > kMaxRounds) return die_by_default(signal_number, info);
  if ((previous_action.sa_flags & SA_SIGINFO) != 0) {
    previous_action.sa_sigaction(signal_number, info, context);
  } else if (previous_action.sa_handler == SIG_DFL || previous_action.sa_handler == SIG_IGN) {
    die_by_default(signal_number, info);  // an ignored fault would repeat forever
  } else {
    previous_action.sa_handler(signal_number);
  }
  handed_on = {};
}

// Restores the signal mask from before the signal. A handler that calls ours may have blocked more
// signals, as the thread sanitizer's does, and our jump skips the code that would unblock them.
void restore_signal_mask(void* context) {
  sigset_t mask = static_cast<ucontext_t*>(context)->uc_sigmask;
  ::sigdelset(&mask, SIGBUS);
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
}

void on_bus_error(int signal_number, siginfo_t* info, void* context) {
  // On a guarded thread, the fault always comes from the mapping. The address proves nothing,
  // because `faulthandler` raises the signal again after its report, without the address.
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
