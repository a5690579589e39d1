// Functions that Python calls directly, because pybind11's dispatch takes longer than reading a
// small record. So `reader[i]` is a tenth faster than in a native class of pybind11, though the
// Python object only holds the native one.
#pragma once

#include <pybind11/pybind11.h>

#include <exception>

namespace tfrfast::python {

// Raises the C++ exception that is being handled in Python.
void raise_caught() noexcept;

// Returns `body()`, a new reference. Null, with Python's error set, if it throws.
template <class Body>
PyObject* call_plainly(const Body& body) noexcept {
  try {
    return body().release().ptr();
  } catch (...) {
    raise_caught();
    return nullptr;
  }
}

// `definition` must outlive Python. The function keeps `self` alive.
inline pybind11::object bind_plainly(PyMethodDef& definition, const pybind11::object& self) {
  return pybind11::reinterpret_steal<pybind11::object>(PyCFunction_New(&definition, self.ptr()));
}

}  // namespace tfrfast::python
