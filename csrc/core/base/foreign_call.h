// Guards calls to code that may end the thread.
#pragma once

#include <exception>
#include <type_traits>

namespace tfrfast {

// Stops the calling thread until the process ends.
[[noreturn]] void wait_for_the_end() noexcept;

// Returns call(). If pthread_exit() ends the thread inside `call`, the thread waits here until the
// process ends. Without the guard, the whole stack would be unwound through destructors that may
// fail, and the first noexcept function on the way would end the process.
//
// Objects made inside `call` are destroyed in either case. Works while an exception is being
// handled. `catch (...)` would not: catching a forced unwind ends the process there.
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
  return call();  // other C++ libraries do not unwind for pthread_exit()
#endif
}

}  // namespace tfrfast
