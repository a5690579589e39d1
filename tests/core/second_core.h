// Another copy of the core's fault guard. In a real process, the Python module and the TensorFlow
// ops each have a copy.
#pragma once

#include <cstdint>

namespace second_core {

void install_fault_guard();
bool can_read(const volatile std::uint8_t* byte);

}  // namespace second_core
