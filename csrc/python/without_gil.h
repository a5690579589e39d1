// Releases the GIL, in threads that may never get it back.
//
// When a program exits, its daemon threads end where they ask for the GIL. Before Python 3.14,
// pthread_exit() ends them, which unwinds the thread's stack. Destructors would run without the
// GIL, and the first noexcept function on the way would end the whole process. So a thread that is
// ended in one of our functions waits there for the process to end, as all threads do since
// Python 3.14.
//
// Therefore nothing else in these bindings releases or takes the GIL. A thread that takes it holds
// no lock, because the thread that ends the interpreter could wait for that lock.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <memory>

#include "core/base/foreign_call.h"
#include "core/base/waiting.h"

namespace tfrfast::python {

// Returns call(), which calls into Python with the GIL held. Code that runs there may release the
// GIL, and the thread may end there. That destroys objects that `call` itself makes, so it should
// only call Python's C functions on objects that exist before and after.
template <class Call>
auto call_python(const Call& call) {
  return call_foreign(call);
}

// Thrown through the core by a callback. Python's error is set, and stays set.
struct PythonErrorIsSet {};

// What ends the waits of threads that Ctrl-C does not reach, as only the main thread is told of it.
class JobEnd {
 public:
  // The calling thread obeys it, as long as it runs.
  static void obey(std::shared_ptr<const JobEnd> end) noexcept;
  // Whether what the calling thread obeys has come.
  static bool has_come() noexcept;

  void come() noexcept { has_come_.store(true, std::memory_order_relaxed); }

 private:
  std::atomic<bool> has_come_ = false;
};

// Releases the GIL while it lives, on the thread that made it. Long waits of the core notice
// Ctrl-C, and the end of the thread's job.
class WithoutGil final : private WaitCheck {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil() { take_gil(); }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

  // Handles Ctrl-C, and calls `callback` unless it is None. Only on the thread that made this.
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

  // False if an error is set, by this call or by an earlier one that the core has not returned
  // from.
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

  mutable PyThreadState* state_;  // check() changes it, whoever holds the object as const
};

// Python's main thread, which alone runs the handlers of signals.
class MainThread {
 public:
  MainThread();  // with the GIL

  // Runs handlers if this is the main thread, which need not have the GIL. What a handler raises
  // becomes Error io with its text. Does nothing on other threads, which may hold locks that the
  // owner of the GIL waits for.
  void check_signals() const;

 private:
  const unsigned long number_;
};

}  // namespace tfrfast::python
