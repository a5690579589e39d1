#include "python/without_gil.h"

namespace tfrfast::python {

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
