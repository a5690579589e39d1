// Guards reads of mapped files. Touching the mapping of a file that was truncated, or whose disk or
// network failed, raises SIGBUS. The guard turns the signal into `false`.
#pragma once

#include <csetjmp>

#include <atomic>

#if defined(__GNUC__)
#define TFRFAST_STATIC_TLS __attribute__((tls_model("initial-exec")))
#else
#define TFRFAST_STATIC_TLS
#endif

namespace tfrfast {

// Installs our SIGBUS handler, once for this copy of the core, and never removes it. A fault
// outside a guard goes to the previous handler. So `faulthandler` and other copies of the core (the
// Python module's and the ops') may be installed in any order. If `faulthandler` is enabled later,
// it prints its report first, and the guard still recovers.
void install_fault_guard();

namespace detail {
// Static TLS, because the handler may run on a thread that has never used a guard, and a signal
// handler must not allocate.
extern thread_local constinit sigjmp_buf* active_fault_guard TFRFAST_STATIC_TLS;
}  // namespace detail

// Runs `leaf()`. False if a touched mapping could not be read; the output of `leaf` is then
// garbage.
//
// The danger: a fault jumps out of the middle of `leaf`. So neither `leaf` nor its callees may need
// a destructor, hold a lock, allocate, or use another guard. Call install_fault_guard() before.
template <class Leaf>
[[gnu::noinline]] bool run_guarded(const Leaf& leaf) noexcept {
  sigjmp_buf here;
  if (sigsetjmp(here, 0) != 0) {
    detail::active_fault_guard = nullptr;
    return false;
  }
  detail::active_fault_guard = &here;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  leaf();
  std::atomic_signal_fence(std::memory_order_seq_cst);
  detail::active_fault_guard = nullptr;
  return true;
}

}  // namespace tfrfast
