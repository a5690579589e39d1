// Calls to code that may end the thread.
#pragma once

#include <exception>

namespace tfrfast {

// Ends the calling thread as far as anyone can see: it waits for the process to end.
[[noreturn]] void wait_for_the_end() noexcept;

// Returns call(). If the thread is ended in there, by pthread_exit(), it waits here for the end of
// the process. Otherwise the whole stack would be unwound, through destructors that rely on what
// the caller of `call` relied on, and the first function that may not throw would end the process.
//
// Objects that `call` itself makes are destroyed all the same.
template <class Call>
auto call_foreign(const Call& call) {
#if defined(__GLIBCXX__)
  try {
    return call();
  } catch (...) {
    if (std::current_exception() != nullptr) throw;
    wait_for_the_end();  // unwound by no exception of C++
  }
#else
  return call();  // other C++ libraries do not unwind
#endif
}

}  // namespace tfrfast
