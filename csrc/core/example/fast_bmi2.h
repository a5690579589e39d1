// Says whether PEXT and PDEP are worth their use. Before Zen 3, AMD's processors run both in
// microcode, which is slower than shifts.
#pragma once

#include <cstdint>
#include <string_view>

namespace tfrfast {

// `vendor` is CPUID's vendor in leaf 0. `signature` is EAX of leaf 1, which holds the family.
bool has_fast_bmi2(std::string_view vendor, std::uint32_t signature) noexcept;

// Asks CPUID of this CPU, which must have BMI2. False on other architectures.
bool cpu_has_fast_bmi2() noexcept;

}  // namespace tfrfast
