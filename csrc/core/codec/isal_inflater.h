// Inflates with Intel's ISA-L, from the machine or from PyPI's package `isal`. About twice as fast
// as zlib. Stops at most block ends.
#pragma once

#include <cstdint>
#include <memory>

#include "core/codec/inflater.h"

namespace tfrfast {

// Null if no library passes the trial, or if $TFRFAST_INFLATE is "zlib".
std::unique_ptr<Inflater> make_isal_inflater();

// Continues a checksum like zlib's function of the same name. Null where make_isal_inflater()
// returns null.
using IsalChecksum = std::uint32_t (*)(std::uint32_t sum, const std::uint8_t* bytes,
                                       std::uint64_t count);
IsalChecksum isal_crc32();
IsalChecksum isal_adler32();

// Compresses a struct isal_zstream at once. Null where make_isal_inflater() returns null, and if
// the library cannot compress.
struct IsalDeflate {
  void (*init)(void* stream);
  int (*deflate)(void* stream);
};
const IsalDeflate* isal_deflate();

}  // namespace tfrfast
