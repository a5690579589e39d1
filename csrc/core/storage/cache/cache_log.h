// What a cache's file of an object says about the object's bytes: a header, and lines. Bytes in,
// bytes out; no I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tfrfast {

// The unit of what is kept, and the unit of a line: up to 16 pages. A mask has a bit for each page
// of a block.
inline constexpr std::uint64_t kCachePageBytes = 4096;
inline constexpr std::uint64_t kCacheBlockPages = 16;
inline constexpr std::uint64_t kCacheBlockBytes = kCachePageBytes * kCacheBlockPages;
using PageMask = std::uint16_t;

inline std::uint64_t cache_pages_of(std::uint64_t bytes) noexcept {
  return bytes / kCachePageBytes + (bytes % kCachePageBytes != 0);
}

// Which object and version a file is of. The header comes first, and lines follow it.
struct CacheHeader {
  std::string url;
  std::string identity;
  std::uint64_t object_bytes = 0;

  static constexpr std::size_t kMaxBytes = 4096;
  // Empty if it is too long.
  std::vector<std::uint8_t> encode() const;
  // Nothing if these bytes do not begin with a whole header.
  static std::optional<CacheHeader> decode(std::span<const std::uint8_t> bytes);
};

enum class CacheLineKind : std::uint16_t {
  kept = 1,  // pages are there: `first` is their checksum
  claimed,   // a process fetches pages: `first` is its number, `second` the claimer, `third` when
  released,  // what the same claimer has claimed of these pages is free
  traffic,   // `first` bytes were read from the cache, and `second` bytes came from elsewhere
};

// Lines are only ever appended. Each counts by itself: one that does not match its own checksum was
// never written.
struct CacheLine {
  std::uint32_t block = 0;
  PageMask pages = 0;
  CacheLineKind kind = CacheLineKind::kept;
  std::uint32_t first = 0;
  std::uint32_t second = 0;
  std::uint32_t third = 0;
  std::uint32_t check = 0;  // of all before it; encode_lines() sets it
};
static_assert(sizeof(CacheLine) == 24);

std::vector<std::uint8_t> encode_lines(std::span<const CacheLine> lines);
// Adds the lines to `out`, and passes over anything else. Returns how many bytes are done with: the
// last ones may be the beginning of a line.
std::size_t decode_lines(std::span<const std::uint8_t> bytes, std::vector<CacheLine>& out);

// The checksum of several pages of a block is all of these, combined with ^, in any order.
// `page` counts in the block.
std::uint32_t page_checksum(std::uint64_t page, const std::uint8_t* bytes,
                            std::size_t count) noexcept;

}  // namespace tfrfast
