// Whether PEXT and PDEP are worth using. Before Zen 3, AMD's processors run them as microcode,
// which takes longer than the shifts they replace.
#pragma once

#include <cstdint>
#include <string_view>

namespace tfrfast {

// For the vendor that CPUID names in leaf 0, and for EAX of leaf 1, which holds the family.
bool has_fast_bmi2(std::string_view vendor, std::uint32_t signature) noexcept;

// The same for this CPU, which must have BMI2. False on other architectures.
bool cpu_has_fast_bmi2() noexcept;

}  // namespace tfrfast
