// Says in a sentence which argument of a native function has the wrong type.
#pragma once

#include <pybind11/pybind11.h>

namespace tfrfast::python {

// Call this after the last function of the module was defined. From then on, an argument of a wrong
// type raises the error that tfrfast/base/refused_arguments.py makes of pybind11's. pybind11's own
// text lists C++ signatures, and does not say which argument it is. Other calls cost nothing more.
void explain_refused_arguments(const pybind11::module_& module);

}  // namespace tfrfast::python
