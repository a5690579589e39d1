// Another copy of the core's fault guard, as the Python module's and the TensorFlow ops' are two in
// one process.
#pragma once

#include <cstdint>

namespace second_core {

void install_fault_guard();
bool can_read(const volatile std::uint8_t* byte);

}  // namespace second_core
