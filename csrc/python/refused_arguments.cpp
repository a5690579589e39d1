#include "python/refused_arguments.h"

#include <stdexcept>

#include "python/plain_function.h"

namespace py = pybind11;

namespace tfrfast::python {
namespace {

using Call = PyObject* (*)(PyObject* self, PyObject* const* arguments, std::size_t flags,
                           PyObject* names);

Call pybind_call = nullptr;  // the same for all functions

// Python's error is set, perhaps to pybind11's.
py::object raise_refused(PyObject* const* arguments, std::size_t flags, PyObject* names) {
  py::error_already_set refused;
  const auto count = static_cast<std::size_t>(PyVectorcall_NARGS(flags));
  py::list unnamed;
  for (std::size_t i = 0; i < count; ++i) unnamed.append(py::handle(arguments[i]));
  py::dict named;
  std::size_t next = count;
  if (names != nullptr) {
    for (const py::handle name : py::reinterpret_borrow<py::tuple>(names)) {
      named[name] = py::handle(arguments[next++]);
    }
  }
  const py::object explain =
      py::module_::import("tfrfast.base.refused_arguments").attr("explain_native");
  explain(refused.value(), unnamed, named);
  refused.restore();
  throw py::error_already_set();
}

PyObject* call(PyObject* self, PyObject* const* arguments, std::size_t flags, PyObject* names) {
  PyObject* const result = pybind_call(self, arguments, flags, names);
  if (result != nullptr || PyErr_ExceptionMatches(PyExc_TypeError) == 0) return result;
  return call_plainly([&] { return raise_refused(arguments, flags, names); });
}

void replace_call(py::handle function) {
  if (PyInstanceMethod_Check(function.ptr()) != 0) {
    function = PyInstanceMethod_GET_FUNCTION(function.ptr());
  }
  if (PyCFunction_Check(function.ptr()) == 0) return;
  PyMethodDef& definition = *reinterpret_cast<PyCFunctionObject*>(function.ptr())->m_ml;
  if (definition.ml_flags != (METH_FASTCALL | METH_KEYWORDS)) return;  // a plain function
  const auto theirs = reinterpret_cast<Call>(reinterpret_cast<void (*)()>(definition.ml_meth));
  if (theirs == &call) return;
  if (pybind_call != nullptr && pybind_call != theirs) {
    throw std::runtime_error("pybind11 calls functions in two ways, of which one is unknown here.");
  }
  pybind_call = theirs;
  definition.ml_meth = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&call));
}

}  // namespace

void explain_refused_arguments(const py::module_& module) {
  for (const auto& [name, value] : module.attr("__dict__").cast<py::dict>()) {
    replace_call(value);
    if (PyType_Check(value.ptr()) == 0) continue;
    for (const auto& [method, unused] : py::dict(value.attr("__dict__"))) {
      replace_call(value.attr(method));
    }
  }
}

}  // namespace tfrfast::python
