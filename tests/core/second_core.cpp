#include "second_core.h"

#define tfrfast tfrfast_second_core
#include "core/storage/fault_guard.cpp"
#undef tfrfast

namespace second_core {

void install_fault_guard() {
  tfrfast_second_core::install_fault_guard();
}

bool can_read(const volatile std::uint8_t* byte) {
  return tfrfast_second_core::run_guarded([byte] { (void)*byte; });
}

}  // namespace second_core
