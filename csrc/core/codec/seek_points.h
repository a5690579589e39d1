// The places inside a compressed shard where inflating can begin. Seek points cut a stream into
// spans.
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

// The size of a span, without the rest of its last deflate block. A span that ends with a member
// may have half the size.
inline constexpr std::uint64_t kSpanBytes = 1 << 20;
// Inflating cannot begin in the middle of a block. Compressors make blocks of a few MiB at most. A
// longer block is an accident or an attack, and is refused.
inline constexpr std::uint64_t kMaxSpanBytes = 512 << 20;
// The max growth of deflate data: two bits stand for at most 258 bytes.
inline constexpr std::uint64_t kMaxRatio = 1032;

// Bytes [begin, end) of the uncompressed stream, and the means to inflate them.
struct Span {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  InflatePlace place;
  std::uint32_t crc = 0;       // CRC-32C of the bytes
  std::uint32_t file_crc = 0;  // CRC-32C of kSampleBytes of the file from place.file_offset
  // the stream's bytes before the span that matches refer to, deflated; may be empty
  std::span<const std::uint8_t> window;
  std::uint32_t window_crc = 0;  // CRC-32C of the deflated window
};

// A sample of this size distinguishes one file from another.
inline constexpr std::size_t kSampleBytes = 256;
std::uint32_t crc_of_sample(const StoredFile& file, std::uint64_t offset);

// Adjacent spans from the stream's beginning. Spans may be added until the stream is complete. Safe
// from many threads.
class SeekPoints {
 public:
  // `window` must be deflated.
  void add(Span span, std::vector<std::uint8_t> window);
  // The spans' windows lie in memory that `owner` keeps alive.
  static std::shared_ptr<const SeekPoints> of(std::vector<Span> spans, std::uint64_t file_end,
                                              std::shared_ptr<const void> owner);
  // The compressed data end at byte `file_end`, or cannot be read further. After complete(), no
  // span follows. After pause(), a search for more data goes on.
  void complete(std::uint64_t file_end);
  void pause(std::uint64_t file_end);

  std::size_t size() const;
  std::uint64_t stream_bytes() const;             // end of the last span
  std::optional<std::uint64_t> file_end() const;  // empty until complete() or pause()
  bool is_complete() const;
  Span operator[](std::size_t number) const;
  // The number of the span that holds byte `offset`, or size() if no span does.
  std::size_t find(std::uint64_t offset) const;

  // Inflates the last 32 KiB of the stream before the span, fewer near the beginning. Throws Error
  // stale_index if the window is damaged.
  static std::size_t inflate_window(const Span& span,
                                    std::span<std::uint8_t, kDeflateWindowBytes> out);

 private:
  mutable std::shared_mutex mutex_;
  std::vector<Span> spans_;
  std::vector<std::vector<std::uint8_t>> windows_;  // moving a vector keeps its bytes in place
  std::shared_ptr<const void> owner_;
  std::optional<std::uint64_t> file_end_;
  bool complete_ = false;
};

}  // namespace tfrfast
