// A compressed file's bytes in order: member after member, wrappers and checksums included.
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
  corrupt,    // what follows is not deflate data, has another checksum, or is not a member
};

// Where inflating can begin: file byte `file_offset`, and the upper `bits` bits of the byte before.
struct InflatePlace {
  std::uint64_t file_offset = 0;
  unsigned bits = 0;
};

// Concatenated members are one stream. GZIP's format says so, and ZLIB's are treated alike. For one
// thread.
class StreamInflater {
 public:
  enum class Mode : std::uint8_t {
    survey,  // can stop at block ends, and checks the members' checksums
    fast,    // neither
  };
  StreamInflater(std::shared_ptr<const StoredFile> file, Compression compression, Mode mode);

  // Begins after the header of the member at that byte of the file, or inside a member, after
  // `window`.
  void begin(std::uint64_t member_offset = 0);
  void begin_at(const InflatePlace& place, std::span<const std::uint8_t> window);

  // From the next begin on, the file is read as if it ended there.
  void take_for_end(std::uint64_t file_offset) noexcept { end_of_file_ = file_offset; }
  // Bytes of the file from there on are not read unless inflating needs them.
  void expect_end(std::uint64_t file_offset) noexcept { expected_end_ = file_offset; }

  // Fills `out`. Stops early only at the stream's end, where a member begins, after a MiB of the
  // file or, if asked, where a block ends. Throws Error io.
  std::size_t read(std::span<std::uint8_t> out, bool stop_at_block_ends = false);

  StreamEnd end() const noexcept { return end_; }
  // Whether read() can begin again from place(): a member's beginning or a block's end is reached.
  bool at_boundary() const noexcept { return at_boundary_; }
  InflatePlace place() const noexcept { return {file_offset(), bits_}; }
  // This member's bytes so far. Matches reach no further back.
  std::uint64_t member_bytes() const noexcept { return member_bytes_; }
  std::uint64_t file_offset() const noexcept { return buffer_end_ - ahead_.size(); }
  // How far the file has been read.
  std::uint64_t input_end() const noexcept { return buffer_end_; }
  // The next bytes that will be inflated, fewer where the file ends. Throws Error io.
  std::span<const std::uint8_t> peek(std::size_t count);
  // Where the last member that was reached begins, or what should have been one.
  std::uint64_t member_offset() const noexcept { return member_offset_; }
  // How many members since begin() had the length and checksum that they end with. Survey only.
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
  const std::unique_ptr<Inflater> inflater_;
  std::uint64_t end_of_file_;
  std::uint64_t expected_end_ = 0;
  PooledBuffer buffer_;
  std::uint64_t buffer_end_ = 0;         // in the file
  std::span<const std::uint8_t> ahead_;  // of the buffer, not yet consumed
  StreamEnd end_ = StreamEnd::none;
  bool between_members_ = false;
  std::optional<std::uint64_t> padding_begin_;
  bool at_boundary_ = false;
  unsigned bits_ = 0;
  bool whole_member_ = true;  // read from its beginning, so that its checksum can be verified
  std::uint64_t member_bytes_ = 0;
  std::uint64_t member_offset_ = 0;
  std::uint64_t verified_members_ = 0;
  Checksum checksum_ = 0;
  std::vector<std::uint8_t> header_;
};

}  // namespace tfrfast
