// The records in a cache's file about its object: a header and lines. Encodes and decodes bytes; no
// I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tfrfast {

// The unit of keeping is a page. The unit of a line is a block of up to 16 pages. A mask has a bit
// for each page of a block.
inline constexpr std::uint64_t kCachePageBytes = 4096;
inline constexpr std::uint64_t kCacheBlockPages = 16;
inline constexpr std::uint64_t kCacheBlockBytes = kCachePageBytes * kCacheBlockPages;
using PageMask = std::uint16_t;

inline std::uint64_t cache_pages_of(std::uint64_t bytes) noexcept {
  return bytes / kCachePageBytes + (bytes % kCachePageBytes != 0);
}

// Names the object and version of a file. Lines follow the header.
struct CacheHeader {
  std::string url;
  std::string identity;
  std::uint64_t object_bytes = 0;

  static constexpr std::size_t kMaxBytes = 4096;
  // Empty if the texts are too long.
  std::vector<std::uint8_t> encode() const;
  // Empty if the bytes do not begin with a whole header.
  static std::optional<CacheHeader> decode(std::span<const std::uint8_t> bytes);
};

enum class CacheLineKind : std::uint16_t {
  kept = 1,  // the pages are present: `first` is their checksum
  // a process fetches the pages: `first` is its number, `second` the claimer, `third` the time
  claimed,
  released,  // the claimer's claims of these pages end
  traffic,   // `first` bytes were read from the cache, `second` bytes were fetched
};

// Lines are only ever appended. Each line stands alone: a line that does not match its checksum
// counts as never written.
struct CacheLine {
  std::uint32_t block = 0;
  PageMask pages = 0;
  CacheLineKind kind = CacheLineKind::kept;
  std::uint32_t first = 0;
  std::uint32_t second = 0;
  std::uint32_t third = 0;
  std::uint32_t check = 0;  // of all earlier bytes; set by encode_lines()
};
static_assert(sizeof(CacheLine) == 24);

std::vector<std::uint8_t> encode_lines(std::span<const CacheLine> lines);
// Appends the lines in `bytes` to `out`, and skips all other bytes. Returns the number of processed
// bytes: the last bytes may be the beginning of a line.
std::size_t decode_lines(std::span<const std::uint8_t> bytes, std::vector<CacheLine>& out);

// The checksum of a page. XOR joins the checksums of a block's pages, in any order. `page` may be
// counted in the object or in the block.
std::uint32_t page_checksum(std::uint64_t page, const std::uint8_t* bytes,
                            std::size_t count) noexcept;

}  // namespace tfrfast
