// Doing without the GIL, in threads that may never get it back.
//
// A program that exits ends its daemon threads where they ask for the GIL: before Python 3.14 by
// pthread_exit(), which unwinds the thread's stack. Destructors would run without the GIL, and the
// first one that the unwinding may not leave would end the whole process. So a thread that is ended
// in one of our functions waits there for the process to end, as all do from Python 3.14 on.
//
// Therefore nothing else in these bindings releases or takes the GIL, and nothing is locked by who
// takes it: the thread that ends the interpreter could wait for the lock.
#pragma once

#include <pybind11/pybind11.h>

#include "core/base/foreign_call.h"

namespace tfrfast::python {

// Returns call(), which calls into Python with the GIL held. Whatever runs there may give up the
// GIL in between, and the thread may end there. Objects that `call` itself makes are destroyed by
// that: it should call Python's C functions, on objects that are there before and after.
template <class Call>
auto call_python(const Call& call) {
  return call_foreign(call);
}

// Thrown through the core by what is called back: Python's error is set, and stays so.
struct PythonErrorIsSet {};

// While it lives, the thread that made it does without the GIL.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil() { take_gil(); }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

  // Lets Ctrl-C be heard, and calls `callback` unless it is None. On the thread that made it.
  // Throws PythonErrorIsSet.
  template <class... Numbers>
  void call_back(pybind11::handle callback, Numbers... numbers) {
    take_gil();
    const bool fine = listen() && (callback.is_none() || call(callback, numbers...));
    state_ = PyEval_SaveThread();
    if (!fine) throw PythonErrorIsSet();
  }

 private:
  void take_gil() noexcept;

  // False if an error is set: by this, or by a call before that the core has not returned from.
  static bool listen() {
    if (PyErr_Occurred() != nullptr) return false;
    return call_python([] { return PyErr_CheckSignals(); }) == 0;
  }

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

  PyThreadState* state_;
};

}  // namespace tfrfast::python
