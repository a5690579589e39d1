// Prints the core's warnings: a graph has no place for warnings.
#pragma once

#include <cstdio>

#include "core/base/warnings.h"

namespace tfrfast::tensorflow {

// Prints the warnings since the last call to stderr.
inline void print_warnings() {
  for (const std::string& text : take_warnings()) {
    std::fprintf(stderr, "tfrfast: %s\n", text.c_str());
  }
}

}  // namespace tfrfast::tensorflow
