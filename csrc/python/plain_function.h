// Functions that Python calls directly: pybind11's dispatch takes longer than reading a small
// record.
#pragma once

#include <pybind11/pybind11.h>

#include <exception>

namespace tfrfast::python {

// Raises in Python what is being caught in C++.
void raise_caught() noexcept;

// `body()`, a new reference; null, with Python's error set, if it throws.
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
