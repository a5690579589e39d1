// Adds to pybind11's classes what pybind11 lacks.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <utility>

namespace tfrfast::python {

// `__init__` of a class. Replaces py::init<Arguments...>(), and py::init(make) where `make` returns
// a value: with either, pybind11 ends the process if memory for registering the object runs out.
template <class Type, class... Arguments>
auto constructor() {
  return pybind11::init([](Arguments... arguments) {
    return std::make_unique<Type>(std::forward<Arguments>(arguments)...);
  });
}
template <class Type, class... Arguments>
auto constructor(Type (*make)(Arguments...)) {
  return pybind11::init([make](Arguments... arguments) {
    return std::make_unique<Type>(make(std::forward<Arguments>(arguments)...));
  });
}

// Call this after the last class of the module was defined. From then on
//
// - if memory runs out while an object is made, MemoryError is raised. pybind11 would destroy the
//   object's value twice, or end the process;
// - pickling an object raises TypeError in every protocol, unless the class has `__reduce__`.
//   Python's protocols 0 and 1 would make an empty object of pybind11, which ends the process.
void complete_classes(const pybind11::module_& module);

}  // namespace tfrfast::python
