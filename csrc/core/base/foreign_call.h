// Calls to code that may end the thread.
#pragma once

#include <exception>
#include <type_traits>

namespace tfrfast {

// The calling thread does nothing more: it waits for the process to end.
[[noreturn]] void wait_for_the_end() noexcept;

// Returns call(). If pthread_exit() ends the thread inside it, the thread waits here for the end of
// the process instead. Otherwise the whole stack would be unwound, through destructors that are not
// prepared for it, and the first noexcept function on the way would end the process.
//
// Objects that `call` itself makes are destroyed in either case.
// It may be made while an exception is handled, where a handler of all exceptions could not: C++
// ends the process if what is no C++ exception is caught there.
template <class Call>
auto call_foreign(const Call& call) {
#if defined(__GLIBCXX__)
  class End {
   public:
    ~End() {
      if (!has_returned && std::uncaught_exceptions() == thrown_before_) wait_for_the_end();
    }
    bool has_returned = false;

   private:
    const int thrown_before_ = std::uncaught_exceptions();
  };
  End end;
  if constexpr (std::is_void_v<decltype(call())>) {
    call();
    end.has_returned = true;
  } else {
    auto returned = call();
    end.has_returned = true;
    return returned;
  }
#else
  return call();  // other C++ libraries do not unwind
#endif
}

}  // namespace tfrfast
