// Where inflating can begin inside a compressed shard. They cut its stream into spans.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <span>
#include <vector>

#include "core/codec/inflater.h"
#include "core/codec/stream_inflater.h"

namespace tfrfast {

// A span has this many bytes and the rest of a deflate block. One that ends where a member does may
// have half as many.
inline constexpr std::uint64_t kSpanBytes = 1 << 20;
// Inflating cannot begin in the middle of a block. Compressors make blocks of a few MiB at most. A
// longer one is an accident or an attack, and refused.
inline constexpr std::uint64_t kMaxSpanBytes = 512 << 20;
// Two bits of deflate data stand for at most 258 bytes.
inline constexpr std::uint64_t kMaxRatio = 1032;

// Bytes [begin, end) of the uncompressed stream, and how to inflate them.
struct Span {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  InflatePlace place;
  std::uint32_t crc = 0;       // CRC-32C of the bytes
  std::uint32_t file_crc = 0;  // CRC-32C of kSampleBytes of the file from place.file_offset
  std::span<const std::uint8_t> window;  // what matches reach back into, deflated; may be empty
  std::uint32_t window_crc = 0;          // CRC-32C of the deflated window
};

// So many compressed bytes tell one file from another.
inline constexpr std::size_t kSampleBytes = 256;
std::uint32_t crc_of_sample(const StoredFile& file, std::uint64_t offset);

// Adjacent spans from the stream's beginning on. More may be added until the stream is complete.
// Safe from many threads.
class SeekPoints {
 public:
  // `window` is deflated.
  void add(Span span, std::vector<std::uint8_t> window);
  // Windows lie in memory that `owner` keeps.
  static std::shared_ptr<const SeekPoints> of(std::vector<Span> spans, std::uint64_t file_end,
                                              std::shared_ptr<const void> owner);
  // The compressed data end, or cannot be read on, at byte `file_end`. Nothing follows, or what
  // does is still being looked for.
  void complete(std::uint64_t file_end);
  void pause(std::uint64_t file_end);

  std::size_t size() const;
  std::uint64_t stream_bytes() const;             // of the spans so far
  std::optional<std::uint64_t> file_end() const;  // once complete, or paused
  Span operator[](std::size_t number) const;
  // The number of the span that holds byte `offset`; size() if none does.
  std::size_t find(std::uint64_t offset) const;
  // The first byte of the stream that is inflated from byte `file_offset` of the file or later. If
  // there is none, the end of what is known of the stream.
  std::uint64_t first_byte_from(std::uint64_t file_offset) const;
  // Whether everything that the file's bytes before `file_offset` inflate to is known.
  bool cover_file_to(std::uint64_t file_offset) const;

  // The 32 KiB of the stream before the span, or as many bytes as there are. Throws Error
  // stale_index if the window is damaged.
  static std::size_t inflate_window(const Span& span,
                                    std::span<std::uint8_t, kDeflateWindowBytes> out);

 private:
  mutable std::shared_mutex mutex_;
  std::vector<Span> spans_;
  std::vector<std::vector<std::uint8_t>> windows_;  // the allocations stay where they are
  std::shared_ptr<const void> owner_;
  std::optional<std::uint64_t> file_end_;
  bool complete_ = false;
};

}  // namespace tfrfast
