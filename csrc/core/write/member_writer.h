// Writes bytes as a GZIP file of members that can be inflated one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/pool.h"
#include "core/codec/codec.h"
#include "core/codec/seek_points.h"
#include "core/storage/local/published_file.h"

namespace tfrfast {

// The most bytes of the stream in a member. Each member is a span: its seek point needs no window,
// and a reader inflates little more than it needs.
inline constexpr std::size_t kMemberBytes = 1 << 20;

// One thread at a time. Every function throws Error io. After an Error, only destroy the writer.
class MemberWriter {
 public:
  // `level` is 0 to 9, or kDefaultLevel. Throws Error io if the machine has no zlib.
  MemberWriter(PublishedFile& file, Compression compression, int level);

  void append(std::span<const std::uint8_t> bytes);
  // Ends the current member and frees memory.
  void flush();
  // Ends the stream. Writes an empty member to an empty file.
  std::shared_ptr<const SeekPoints> finish();

  std::uint64_t file_bytes() const noexcept { return file_bytes_; }

 private:
  void write_member();
  void write_out(std::span<const std::uint8_t> bytes);

  struct Sample {  // bytes of the file from the begin of a member's deflate data
    std::size_t span;
    std::vector<std::uint8_t> bytes;
  };

  PublishedFile& file_;
  const Compression compression_;
  const int level_;
  PooledBuffer buffer_;
  std::size_t buffered_ = 0;
  std::uint64_t file_bytes_ = 0;
  std::vector<Span> spans_;
  std::vector<Sample> samples_;  // incomplete samples
};

}  // namespace tfrfast
