// Formats a checksum for messages.
#pragma once

#include <cstdio>
#include <string>

#include "core/crc32c/crc32c.h"

namespace tfrfast {

inline std::string hex(MaskedCrc crc) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", crc.value);
  return text;
}

}  // namespace tfrfast
