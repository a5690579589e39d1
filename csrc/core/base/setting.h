// Reads numbers from environment variables.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace tfrfast {

// Returns the number in the environment variable `name`, or `otherwise` if unset or not a number.
inline std::uint64_t setting(const char* name, std::uint64_t otherwise) noexcept {
  const char* const text = std::getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  char* end = nullptr;
  const unsigned long long number = std::strtoull(text, &end, 10);
  return *end == '\0' ? number : otherwise;
}

}  // namespace tfrfast
