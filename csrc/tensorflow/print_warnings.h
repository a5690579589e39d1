// The core's warnings are printed, because a graph has no place for them.
#pragma once

#include <cstdio>

#include "core/base/warnings.h"

namespace tfrfast::tensorflow {

// Prints the warnings that came up since the last call to stderr.
inline void print_warnings() {
  for (const std::string& text : take_warnings()) {
    std::fprintf(stderr, "tfrfast: %s\n", text.c_str());
  }
}

}  // namespace tfrfast::tensorflow
