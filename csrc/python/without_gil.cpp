#include "python/without_gil.h"

#include <utility>

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

}  // namespace tfrfast::python
