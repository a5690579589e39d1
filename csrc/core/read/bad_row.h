// Explains why a frame in a file differs from the indexed record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/read/frame_reader.h"
#include "core/shard/framing.h"

namespace tfrfast {

// The bytes around a payload in the file.
struct Seal {
  std::uint8_t header[kHeaderBytes];
  std::uint8_t footer[kFooterBytes];
};

// "record 3 of 'shard' (record 12 of all) at byte 4711".
std::string describe(const Row& row);

enum class Verdict : std::uint8_t { good, bad_header, other_length, bad_payload };

// Makes the error for a row whose verdict is not good. `seal` was read around the row's payload,
// and `computed` is the payload's checksum. Reads the file again to tell damage from an index that
// no longer fits.
BadRow explain(const Row& row, std::size_t batch_row, Verdict verdict, const Seal& seal,
               MaskedCrc computed, SkipAdvice advice);

}  // namespace tfrfast
