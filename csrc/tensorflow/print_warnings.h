// Warnings of the core: graphs have no place for them, the process has.
#pragma once

#include <cstdio>

#include "core/base/warnings.h"

namespace tfrfast::tensorflow {

// To stderr, those that came up since the last time.
inline void print_warnings() {
  for (const std::string& text : take_warnings()) {
    std::fprintf(stderr, "tfrfast: %s\n", text.c_str());
  }
}

}  // namespace tfrfast::tensorflow
