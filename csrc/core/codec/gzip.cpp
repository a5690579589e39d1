// GZIP: ten or more bytes before the deflate data, checksum and length after the data (RFC 1952).
#include <cstring>

#include "core/base/bytes.h"
#include "core/codec/isal_inflater.h"
#include "core/codec/wrappers.h"
#include "core/codec/zlib.h"

namespace tfrfast {
namespace {

constexpr std::uint8_t kMagic[] = {0x1f, 0x8b, 8};  // 8 means deflate. The flags follow
constexpr unsigned kHasHeaderCrc = 2, kHasExtra = 4, kHasName = 8, kHasComment = 16,
                   kReservedFlags = 0xe0;
// Limits a member's name and comment. Longer than any path.
constexpr std::size_t kMaxTextBytes = 64 << 10;

bool gzip_may_begin(std::span<const std::uint8_t> head) noexcept {
  return head.size() >= sizeof kMagic && std::memcmp(head.data(), kMagic, sizeof kMagic) == 0;
}

Checksum add_to_crc32(Checksum sum, std::span<const std::uint8_t> bytes) {
  static const IsalChecksum fast = isal_crc32();
  if (fast != nullptr) return fast(static_cast<std::uint32_t>(sum), bytes.data(), bytes.size());
  return zlib().crc32(sum, bytes.data(), static_cast<unsigned>(bytes.size()));
}

bool read_gzip_header(std::vector<std::uint8_t>& header, const MoreBytes& more) {
  const auto last_two = [&] {
    return header[header.size() - 2] + 256u * header[header.size() - 1];
  };
  const auto read_text = [&] {
    for (std::size_t bytes = 0; bytes < kMaxTextBytes; ++bytes) {
      if (!more(1)) return false;
      if (header.back() == 0) return true;
    }
    return false;
  };
  // Read byte by byte: bytes that are not a header may end early.
  for (const std::uint8_t expected : kMagic) {
    if (!more(1) || header.back() != expected) return false;
  }
  if (!more(7) || (header[3] & kReservedFlags) != 0) return false;
  const unsigned flags = header[3];
  if ((flags & kHasExtra) != 0 && (!more(2) || !more(last_two()))) return false;
  if ((flags & kHasName) != 0 && !read_text()) return false;
  if ((flags & kHasComment) != 0 && !read_text()) return false;
  if ((flags & kHasHeaderCrc) == 0) return true;
  const Checksum crc = add_to_crc32(0, header);
  return more(2) && (crc & 0xffff) == last_two();
}

bool gzip_trailer_holds(const std::uint8_t* trailer, Checksum sum, std::uint64_t member_bytes) {
  return load_little_endian<std::uint32_t>(trailer) == sum &&
         load_little_endian<std::uint32_t>(trailer + 4) == static_cast<std::uint32_t>(member_bytes);
}

const std::uint8_t* find_gzip_member(const std::uint8_t* bytes, const std::uint8_t* end) noexcept {
  constexpr std::size_t kSeenBytes = sizeof kMagic + 1;
  while (static_cast<std::size_t>(end - bytes) >= kSeenBytes) {
    const void* const first =
        std::memchr(bytes, kMagic[0], static_cast<std::size_t>(end - bytes) - kSeenBytes + 1);
    if (first == nullptr) break;
    bytes = static_cast<const std::uint8_t*>(first);
    if (std::memcmp(bytes, kMagic, sizeof kMagic) == 0 &&
        (bytes[sizeof kMagic] & kReservedFlags) == 0) {
      return bytes;
    }
    ++bytes;
  }
  return end;
}

}  // namespace

constinit const Codec kGzipCodec{
    .compression = Compression::gzip,
    .name = "GZIP",
    .may_begin = gzip_may_begin,
    .read_header = read_gzip_header,
    .first_checksum = 0,
    .add_to_checksum = add_to_crc32,
    .trailer_bytes = 8,
    .trailer_holds = gzip_trailer_holds,
    .zeros_are_padding = true,
    .find_member = find_gzip_member,
    .window_bits = kZWholeWindow + 16,
    .written_header_bytes = 10,
    .written_in_members = true,
};

}  // namespace tfrfast
