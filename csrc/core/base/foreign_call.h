// Calls to code that may end the thread.
#pragma once

#include <exception>

namespace tfrfast {

// The calling thread does nothing more: it waits for the process to end.
[[noreturn]] void wait_for_the_end() noexcept;

// Returns call(). If pthread_exit() ends the thread inside it, the thread waits here for the end of
// the process instead. Otherwise the whole stack would be unwound, through destructors that are not
// prepared for it, and the first noexcept function on the way would end the process.
//
// Objects that `call` itself makes are destroyed in either case.
template <class Call>
auto call_foreign(const Call& call) {
#if defined(__GLIBCXX__)
  try {
    return call();
  } catch (...) {
    if (std::current_exception() != nullptr) throw;
    wait_for_the_end();  // what unwinds the stack is not a C++ exception
  }
#else
  return call();  // other C++ libraries do not unwind
#endif
}

}  // namespace tfrfast
