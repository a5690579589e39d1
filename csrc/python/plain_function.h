// Functions that Python calls directly. pybind11's dispatch takes longer than reading a small
// record. Without the dispatch, `reader[i]` is a tenth faster than in a native class of pybind11,
// although the Python object only holds the native object.
#pragma once

#include <pybind11/pybind11.h>

#include <exception>

namespace tfrfast::python {

// Raises the C++ exception being handled as a Python exception.
void raise_caught() noexcept;

// Returns `body()`, a new reference. If `body` throws, sets Python's error and returns null.
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
