#include "python/without_gil.h"

namespace tfrfast::python {

void WithoutGil::take_gil() noexcept {
  call_python([this] { PyEval_RestoreThread(state_); });
}

}  // namespace tfrfast::python
