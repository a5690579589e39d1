// Translates the core's errors to Python's. The only place that does so.
#include <cerrno>
#include <stdexcept>

#include "core/base/error.h"
#include "python/plain_function.h"
#include "python/register.h"
#include "python/text.h"
#include "python/without_gil.h"

namespace py = pybind11;

namespace tfrfast::python {
namespace {

template <class Number>
py::object number_or_none(const std::optional<Number>& value) {
  return value ? py::object(py::int_(*value)) : py::none();
}

// `tfrfast.errors` is pure Python, so that users can read the module, and needs no native module.
void raise_record_error(const char* class_name, const Error& error) {
  const py::object type = py::module_::import("tfrfast.errors").attr(class_name);
  const ErrorPlace& place = error.place();
  const py::tuple arguments = py::make_tuple(to_text(error.message()));
  py::dict names;
  names["path"] = to_text(place.path);
  names["record"] = number_or_none(place.record);
  names["offset"] = number_or_none(place.offset);
  const auto raised = py::reinterpret_steal<py::object>(
      call_python([&] { return PyObject_Call(type.ptr(), arguments.ptr(), names.ptr()); }));
  if (raised) PyErr_SetObject(type.ptr(), raised.ptr());
}

void raise_os_error(const Error& error) {
  // OSError(errno, text, filename) picks FileNotFoundError and its siblings by itself.
  const py::object type = py::reinterpret_borrow<py::object>(PyExc_OSError);
  const py::str message = to_text(error.message());
  const py::object raised = error.place().path.empty()
                                ? type(error.system_error(), message)
                                : type(error.system_error(), message, to_text(error.place().path));
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(raised.ptr())), raised.ptr());
}

void raise(const Error& error) {
  switch (error.kind()) {
    case ErrorKind::corrupt:
      return raise_record_error("CorruptRecordError", error);
    case ErrorKind::truncated:
      return raise_record_error("TruncatedRecordError", error);
    case ErrorKind::stale_index:
      return raise_record_error("StaleIndexError", error);
    case ErrorKind::feature:
      return raise_record_error("FeatureError", error);
    case ErrorKind::io:
      return raise_os_error(error);
    case ErrorKind::out_of_range:
      return PyErr_SetObject(PyExc_IndexError, to_text(error.message()).ptr());
    case ErrorKind::memory:
      return PyErr_SetObject(PyExc_MemoryError, to_text(error.message()).ptr());
    case ErrorKind::invalid:
    case ErrorKind::closed:
      return PyErr_SetObject(PyExc_ValueError, to_text(error.message()).ptr());
  }
}

// If Python has no memory for an object, pybind11 throws a runtime_error and leaves Python's own
// error set. Python's error names the true reason.
bool memory_error_is_set() noexcept {
  return PyErr_Occurred() != nullptr && PyErr_ExceptionMatches(PyExc_MemoryError) != 0;
}

}  // namespace

void raise_caught() noexcept {
  try {
    throw;
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const py::builtin_exception& error) {
    error.set_error();
  } catch (const Error& error) {
    raise(error);
  } catch (const PythonErrorIsSet&) {
    // Python raises the error that is set.
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    if (!memory_error_is_set()) PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}

void register_errors(py::module_&) {
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const Error& error) {
      raise(error);
    } catch (const PythonErrorIsSet&) {
      // Python raises the error that is set.
    } catch (const std::runtime_error&) {
      if (!memory_error_is_set()) throw;
    }
  });
}

}  // namespace tfrfast::python
