// Another copy of the core's fault guard, because the Python module and the TensorFlow ops each
// have one in the same process.
#pragma once

#include <cstdint>

namespace second_core {

void install_fault_guard();
bool can_read(const volatile std::uint8_t* byte);

}  // namespace second_core
