#include "core/shard/compression.h"

#include <algorithm>

#include "core/base/bytes.h"
#include "core/shard/framing.h"

namespace tfrfast {

const char* compression_name(Compression compression) noexcept {
  switch (compression) {
    case Compression::none:
      return "";
    case Compression::gzip:
      return "GZIP";
    case Compression::zlib:
      return "ZLIB";
  }
  return "";
}

Compression detect_compression(const StoredFile& file) {
  std::uint8_t head[kHeaderBytes] = {};
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(file.bytes(), sizeof head));
  file.read(0, head, count);
  if (count == kHeaderBytes && header_is_intact(decode_header(head))) return Compression::none;
  if (count >= 3 && head[0] == 0x1f && head[1] == 0x8b && head[2] == 8) return Compression::gzip;
  // Four zero bytes there are the upper half of a plain record's length, however damaged the rest
  // is; what deflate begins with never has them.
  if (count == kHeaderBytes && load_little_endian<std::uint32_t>(head + 4) == 0) {
    return Compression::none;
  }
  const bool deflate_in_zlib = (head[0] & 0x0f) == 8 && (head[0] >> 4) <= 7;
  if (count >= 2 && deflate_in_zlib && (head[0] * 256 + head[1]) % 31 == 0) {
    return Compression::zlib;
  }
  return Compression::none;
}

}  // namespace tfrfast
