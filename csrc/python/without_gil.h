// Releases the GIL, in threads that may never get the GIL back.
//
// When a program exits, its daemon threads end where they request the GIL. Before Python 3.14,
// pthread_exit() ends such a thread, which unwinds the thread's stack. Destructors would run
// without the GIL, and the first noexcept function on the way would end the whole process. So a
// thread that is ended in one of our functions waits there until the process ends, as all threads
// do since Python 3.14.
//
// Therefore no other code in these bindings releases or takes the GIL. A thread that takes the GIL
// holds no lock, because the thread that ends the interpreter could wait for that lock.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <memory>

#include "core/base/foreign_call.h"
#include "core/base/waiting.h"

namespace tfrfast::python {

// Returns call(), which calls into Python with the GIL held. The Python code may release the GIL,
// and the thread may end there. Ending destroys the objects made inside `call`, so `call` should
// only call Python's C functions on objects that exist before and after.
template <class Call>
auto call_python(const Call& call) {
  return call_foreign(call);
}

// Thrown through the core by a callback. Python's error is set, and stays set.
struct PythonErrorIsSet {};

// Ends the waits of threads that Ctrl-C does not reach: only the main thread learns of Ctrl-C.
class JobEnd {
 public:
  // The calling thread obeys `end` as long as the thread runs.
  static void obey(std::shared_ptr<const JobEnd> end) noexcept;
  // Whether the end that the calling thread obeys has come.
  static bool has_come() noexcept;

  void come() noexcept { has_come_.store(true, std::memory_order_relaxed); }

 private:
  std::atomic<bool> has_come_ = false;
};

// Releases the GIL while the object lives, on the thread that made the object. Long waits of the
// core notice Ctrl-C, and the end of the thread's job.
class WithoutGil final : private WaitCheck {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil() { take_gil(); }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

  // Handles Ctrl-C, and calls `callback` unless None. Call on the thread that made this object.
  // Throws PythonErrorIsSet.
  template <class... Numbers>
  void call_back(pybind11::handle callback, Numbers... numbers) {
    take_gil();
    const bool fine = listen() && (callback.is_none() || call(callback, numbers...));
    state_ = PyEval_SaveThread();
    if (!fine) throw PythonErrorIsSet();
  }

 private:
  void check() override;
  void take_gil() noexcept;

  // False if an error is set, by this call or by an earlier call from which the core has not
  // returned.
  static bool listen();

  template <class... Numbers>
  static bool call(pybind11::handle callback, Numbers... numbers) {
    constexpr const char* kFormat = &"KKKK"[4 - sizeof...(Numbers)];
    PyObject* const result = call_python([&] {
      return PyObject_CallFunction(callback.ptr(), kFormat,
                                   static_cast<unsigned long long>(numbers)...);
    });
    Py_XDECREF(result);
    return result != nullptr;
  }

  mutable PyThreadState* state_;  // check() changes the pointer, even through a const object
};

// Python's main thread, the only thread that runs signal handlers.
class MainThread {
 public:
  MainThread();  // requires the GIL

  // Runs signal handlers if this is the main thread, with or without the GIL. An exception of a
  // handler becomes Error io with the exception's text. Does nothing on other threads, which may
  // hold locks that the owner of the GIL waits for.
  void check_signals() const;

 private:
  const unsigned long number_;
};

}  // namespace tfrfast::python
