// ZLIB: two bytes before the deflate data, a checksum after the data (RFC 1950).
#include "core/base/bytes.h"
#include "core/codec/isal_inflater.h"
#include "core/codec/wrappers.h"
#include "core/codec/zlib.h"
#include "core/shard/framing.h"

namespace tfrfast {
namespace {

// A bit of the second byte; no shard has a preset dictionary.
constexpr unsigned kPresetDictionary = 0x20;

// Whether the byte names deflate, with a window of at most 32 KiB.
bool names_deflate(std::uint8_t first) {
  return (first & 0x0f) == 8 && (first >> 4) <= 7;
}

bool is_header(const std::uint8_t* bytes) {
  return names_deflate(bytes[0]) && (bytes[0] * 256 + bytes[1]) % 31 == 0;
}

bool zlib_may_begin(std::span<const std::uint8_t> head) noexcept {
  // Four zero bytes at this place are the upper half of a plain record's length, even if the rest
  // is damaged. Deflate data never begin with four zero bytes.
  if (head.size() >= kHeaderBytes && load_little_endian<std::uint32_t>(head.data() + 4) == 0) {
    return false;
  }
  return head.size() >= 2 && is_header(head.data());
}

bool read_zlib_header(std::vector<std::uint8_t>& header, const MoreBytes& more) {
  return more(1) && names_deflate(header[0]) && more(1) && is_header(header.data()) &&
         (header[1] & kPresetDictionary) == 0;
}

Checksum add_to_adler32(Checksum sum, std::span<const std::uint8_t> bytes) {
  static const IsalChecksum fast = isal_adler32();
  if (fast != nullptr) return fast(static_cast<std::uint32_t>(sum), bytes.data(), bytes.size());
  return zlib().adler32(sum, bytes.data(), static_cast<unsigned>(bytes.size()));
}

bool zlib_trailer_holds(const std::uint8_t* trailer, Checksum sum, std::uint64_t) {
  Checksum stored = 0;  // big-endian
  for (int i = 0; i < 4; ++i) stored = stored << 8 | trailer[i];
  return stored == sum;
}

}  // namespace

constinit const Codec kZlibCodec{
    .compression = Compression::zlib,
    .name = "ZLIB",
    .may_begin = zlib_may_begin,
    .read_header = read_zlib_header,
    .first_checksum = 1,
    .add_to_checksum = add_to_adler32,
    .trailer_bytes = 4,
    .trailer_holds = zlib_trailer_holds,
    .zeros_are_padding = false,
    .find_member = nullptr,
    .window_bits = kZWholeWindow,
    .written_header_bytes = 2,
    .written_in_members = false,
};

}  // namespace tfrfast
