#include "python/without_gil.h"

#include <cerrno>
#include <exception>
#include <string>
#include <utility>

#include "core/base/error.h"

namespace py = pybind11;

namespace tfrfast::python {
namespace {

thread_local std::shared_ptr<const JobEnd> job_end;

}  // namespace

void JobEnd::obey(std::shared_ptr<const JobEnd> end) noexcept {
  job_end = std::move(end);
}

bool JobEnd::has_come() noexcept {
  return job_end != nullptr && job_end->has_come_.load(std::memory_order_relaxed);
}

bool WithoutGil::listen() {
  if (PyErr_Occurred() != nullptr) return false;
  if (call_python([] { return PyErr_CheckSignals(); }) != 0) return false;
  if (!JobEnd::has_come()) return true;
  PyErr_SetNone(PyExc_KeyboardInterrupt);
  return false;
}

void WithoutGil::take_gil() noexcept {
  call_python([this] { PyEval_RestoreThread(state_); });
}

void WithoutGil::check() {
  take_gil();
  const bool fine = listen();
  state_ = PyEval_SaveThread();
  if (!fine) throw PythonErrorIsSet();
}

MainThread::MainThread()
    : number_(py::module_::import("threading")
                  .attr("main_thread")()
                  .attr("ident")
                  .cast<unsigned long>()) {}

void MainThread::check_signals() const {
  if (PyThread_get_thread_ident() != number_ || Py_IsInitialized() == 0) return;
  std::string raised;
  const PyGILState_STATE state = PyGILState_Ensure();
  if (call_python([] { return PyErr_CheckSignals(); }) != 0) {
    try {
      const py::error_already_set error;
      raised = py::str(error.type().attr("__name__")).cast<std::string>();
      const std::string text = py::str(error.value());
      if (!text.empty()) raised += ": " + text;
    } catch (const std::exception&) {
      // The exception has no text. The GIL must be released all the same.
      if (raised.empty()) raised = "A signal's handler has failed.";
    }
  }
  PyGILState_Release(state);
  if (!raised.empty()) throw Error(ErrorKind::io, raised, {}, EINTR);
}

}  // namespace tfrfast::python
