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
#include "core/storage/publication.h"

namespace tfrfast {

// Every member holds at most this many bytes of the stream, so that each is a span of its own. Its
// seek point needs no window, and a reader inflates no more than necessary.
inline constexpr std::size_t kMemberBytes = 1 << 20;

// One thread at a time. All throw Error io; then only destroy it.
class MemberWriter {
 public:
  // `level` is 0 to 9, or kDefaultLevel. Throws Error io without a zlib.
  MemberWriter(Publication& file, Compression compression, int level);

  void append(std::span<const std::uint8_t> bytes);
  // Ends the current member and frees memory.
  void flush();
  // Ends the stream. A file must have at least one member.
  std::shared_ptr<const SeekPoints> finish();

  std::uint64_t file_bytes() const noexcept { return file_bytes_; }

 private:
  void write_member();
  void write_out(std::span<const std::uint8_t> bytes);

  struct Sample {  // bytes of the file, from where a member's deflate data begin
    std::size_t span;
    std::vector<std::uint8_t> bytes;
  };

  Publication& file_;
  const Compression compression_;
  const int level_;
  PooledBuffer buffer_;
  std::size_t buffered_ = 0;
  std::uint64_t file_bytes_ = 0;
  std::vector<Span> spans_;
  std::vector<Sample> samples_;  // that are not complete yet
};

}  // namespace tfrfast
