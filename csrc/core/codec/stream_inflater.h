// Inflates a whole compressed file: member after member, with wrappers and checksums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/base/pool.h"
#include "core/codec/codec.h"
#include "core/codec/inflater.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

enum class StreamEnd : std::uint8_t {
  none,       // not reached yet
  clean,      // the file ends after a member's checksum
  truncated,  // the file ends inside a member
  corrupt,    // a byte sequence that is not deflate data or not a member, or a wrong checksum
};

// A place to begin inflating: file byte `file_offset`, plus the upper `bits` bits of the byte
// before.
struct InflatePlace {
  std::uint64_t file_offset = 0;
  unsigned bits = 0;
};

// Concatenated members form one stream, as GZIP's format says; ZLIB members are treated alike. One
// thread at a time.
class StreamInflater {
 public:
  enum class Checks : std::uint8_t { none, members };  // of members' checksums
  StreamInflater(std::shared_ptr<const StoredFile> file, Compression compression,
                 Inflater::Kind kind, Checks checks);

  // Begins after the header of the member at byte `member_offset` of the file, or inside a member,
  // after `window`.
  void begin(std::uint64_t member_offset = 0);
  void begin_at(const InflatePlace& place, std::span<const std::uint8_t> window);

  // A boundary inside a member.
  struct Mark {
    InflatePlace place;
    std::uint64_t member_bytes = 0;
    Checksum checksum = 0;
    bool whole_member = true;
  };
  Mark mark() const noexcept { return {place(), member_bytes_, checksum_, whole_member_}; }
  // Goes back to a mark in the current member, and uses zlib until the next begin().
  void repeat_with_zlib(const Mark& mark, std::span<const std::uint8_t> window);
  Inflater::Kind kind() const noexcept { return inflater_->kind(); }

  // From the next begin on, treats `file_offset` as the end of the file.
  void take_for_end(std::uint64_t file_offset) noexcept { end_of_file_ = file_offset; }
  // Bytes of the file from `file_offset` on are read only if inflating needs them.
  void expect_end(std::uint64_t file_offset) noexcept { expected_end_ = file_offset; }

  // Fills `out`. Stops early only at the stream's end, where a member begins, after a MiB of the
  // file and, on request, where a block ends. Throws Error io.
  std::size_t read(std::span<std::uint8_t> out, bool stop_at_block_ends = false);

  StreamEnd end() const noexcept { return end_; }
  // Whether read() can begin again from place(): at a member's beginning or a block's end.
  bool at_boundary() const noexcept { return at_boundary_; }
  InflatePlace place() const noexcept { return {file_offset(), bits_}; }
  // The current member's output so far. Matches reach no further back.
  std::uint64_t member_bytes() const noexcept { return member_bytes_; }
  std::uint64_t file_offset() const noexcept { return buffer_end_ - ahead_.size(); }
  // The end of the file's bytes read so far.
  std::uint64_t input_end() const noexcept { return buffer_end_; }
  // The next bytes to be inflated, fewer where the file ends. Throws Error io.
  std::span<const std::uint8_t> peek(std::size_t count);
  // The place of the last member that was reached, or of the bytes where a member was expected.
  std::uint64_t member_offset() const noexcept { return member_offset_; }
  // The number of members since begin() with correct length and checksum. Only with
  // Checks::members.
  std::uint64_t verified_members() const noexcept { return verified_members_; }

 private:
  bool fill();  // false at the file's end
  void consume(std::ptrdiff_t count);
  bool take(std::uint8_t* bytes, std::size_t count);
  bool skip_padding(std::uint64_t limit);
  void open_member();
  bool read_header();
  void close_member();
  void check(std::span<const std::uint8_t> produced);

  const std::shared_ptr<const StoredFile> file_;
  const Codec& codec_;
  const bool checks_;
  std::unique_ptr<Inflater> inflater_;
  const Inflater::Kind kind_;  // from begin() on
  std::uint64_t end_of_file_;
  std::uint64_t expected_end_ = 0;
  PooledBuffer buffer_;
  std::uint64_t buffer_end_ = 0;         // in the file
  std::span<const std::uint8_t> ahead_;  // the unconsumed bytes of the buffer
  StreamEnd end_ = StreamEnd::none;
  bool between_members_ = false;
  std::optional<std::uint64_t> padding_begin_;
  bool at_boundary_ = false;
  unsigned bits_ = 0;
  bool whole_member_ = true;  // read from its beginning, so the checksum can be verified
  std::uint64_t member_bytes_ = 0;
  std::uint64_t member_offset_ = 0;
  std::uint64_t verified_members_ = 0;
  Checksum checksum_ = 0;
  std::vector<std::uint8_t> header_;
};

}  // namespace tfrfast
