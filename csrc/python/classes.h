// What classes of pybind11 lack.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <utility>

namespace tfrfast::python {

// `__init__` of a class. Use it in place of py::init<Arguments...>(), and of py::init(make) where
// `make` returns a value: with those, pybind11 ends the process if it has no memory to register the
// object.
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

// Call this when the module has all its classes. From then on
//
// - memory that runs out while an object is made is a MemoryError. pybind11 would destroy what the
//   object holds twice, or end the process;
// - pickling an object is a TypeError, in every protocol, unless its class has `__reduce__`.
// Python's
//   protocols 0 and 1 would make a bare object of pybind11, which ends the process.
void complete_classes(const pybind11::module_& module);

}  // namespace tfrfast::python
