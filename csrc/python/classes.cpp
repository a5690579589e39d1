#include "python/classes.h"

#include <unordered_map>

#include "python/plain_function.h"
#include "python/without_gil.h"

namespace py = pybind11;

namespace tfrfast::python {
namespace {

using py::detail::instance;
using py::detail::type_info;
using InitInstance = void (*)(instance*, const void*);

// The original init_instance function of each class.
std::unordered_map<const type_info*, InitInstance>& pybind_inits() {
  static auto* const inits = new std::unordered_map<const type_info*, InitInstance>;
  return *inits;
}

// Returns the value of `made` that has no holder yet.
py::detail::value_and_holder value_without_holder(instance* made) {
  for (auto& value : py::detail::values_and_holders(made)) {
    if (value && !value.holder_constructed()) return value;
  }
  return {};
}

// Registers a value with Python and makes the value's holder.
void init_instance(instance* made, const void* holder) {
  auto value = value_without_holder(made);
  try {
    pybind_inits().at(value.type)(made, holder);
  } catch (...) {
    if (value.instance_registered()) {
      // Making the holder failed and destroyed the value.
      py::detail::deregister_instance(made, value.value_ptr(), value.type);
      value.set_instance_registered(false);
      value.value_ptr() = nullptr;
    } else if (holder != nullptr) {
      value.value_ptr() = nullptr;  // the caller's holder owns the value
    }
    throw;
  }
}

// Allocates an object made by C++.
PyObject* allocate(PyTypeObject* type, Py_ssize_t items) {
  PyObject* const made = PyType_GenericAlloc(type, items);
  if (made == nullptr) throw PythonErrorIsSet();
  return made;
}

// Allocates an object made by Python.
PyObject* new_object(PyTypeObject* type, PyObject*, PyObject*) {
  return call_plainly([type] {
    PyObject* const made = PyType_GenericAlloc(type, 0);
    if (made == nullptr) throw PythonErrorIsSet();
    try {
      reinterpret_cast<instance*>(made)->allocate_layout();
    } catch (...) {
      // The object has no layout that its class could destroy.
      if (PyType_IS_GC(type)) PyObject_GC_UnTrack(made);
      type->tp_free(made);
      Py_DECREF(type);
      throw;
    }
    return py::reinterpret_steal<py::object>(made);
  });
}

PyObject* refuse_to_pickle(PyObject* self, PyObject*) {
  return PyErr_Format(PyExc_TypeError, "cannot pickle '%s' object", Py_TYPE(self)->tp_name);
}

PyMethodDef pickling = {"__reduce__", &refuse_to_pickle, METH_NOARGS, nullptr};

void complete(const py::type& type, type_info& info) {
  pybind_inits()[&info] = info.init_instance;
  info.init_instance = &init_instance;
  info.type->tp_alloc = &allocate;
  info.type->tp_new = &new_object;
  const py::handle object(reinterpret_cast<PyObject*>(&PyBaseObject_Type));
  if (type.attr("__reduce__").is(object.attr("__reduce__"))) {
    type.attr("__reduce__") =
        py::reinterpret_steal<py::object>(PyDescr_NewMethod(info.type, &pickling));
  }
}

}  // namespace

void complete_classes(const py::module_& module) {
  for (const auto& [name, value] : module.attr("__dict__").cast<py::dict>()) {
    if (!PyType_Check(value.ptr())) continue;
    auto* const type = reinterpret_cast<PyTypeObject*>(value.ptr());
    if (type_info* const info = py::detail::get_type_info(type)) {
      complete(py::reinterpret_borrow<py::type>(value), *info);
    }
  }
}

}  // namespace tfrfast::python
