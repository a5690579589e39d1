// Checks the arguments of orders and plans.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/error.h"

namespace tfrfast {

[[noreturn]] inline void refuse(const std::string& what, std::int64_t found,
                                const std::string& allowed) {
  throw Error(ErrorKind::invalid,
              what + " is " + std::to_string(found) + ", but must be " + allowed + ".");
}

inline void check_range(const char* what, std::int64_t found, std::int64_t min, std::int64_t max) {
  if (found < min || found > max) {
    refuse(what, found, "from " + std::to_string(min) + " to " + std::to_string(max));
  }
}

}  // namespace tfrfast
