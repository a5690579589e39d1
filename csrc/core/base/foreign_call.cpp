#include "core/base/foreign_call.h"

#include <unistd.h>

#include "core/base/thread.h"

namespace tfrfast {

void wait_for_the_end() noexcept {
  leave_signals_to_others();
  for (;;) ::pause();
}

}  // namespace tfrfast
