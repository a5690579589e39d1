// Compresses bytes to deflate data with the machine's zlib.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/codec/zlib.h"

namespace tfrfast {

inline constexpr int kDefaultLevel = -1;  // zlib's default (6). Otherwise 0 to 9

// One thread at a time. Each call makes a whole stream: raw deflate data, or a GZIP or ZLIB member.
class Deflater {
 public:
  // `window_bits` is a codec's, or kZRawWindow. Throws Error io if the machine has no zlib.
  Deflater(int window_bits, int level);
  ~Deflater();
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;

  // The result is valid until the next call.
  std::span<const std::uint8_t> deflate(std::span<const std::uint8_t> bytes);

 private:
  const Zlib& zlib_;
  ZStream stream_;
  std::vector<std::uint8_t> out_;
};

}  // namespace tfrfast
