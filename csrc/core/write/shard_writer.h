// Records in; one shard and its index out, published together when they are complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/codec/deflater.h"
#include "core/read/record_batch.h"
#include "core/storage/publication.h"
#include "core/write/frame_buffer.h"
#include "core/write/member_writer.h"

namespace tfrfast {

inline constexpr std::size_t kWriteBufferBytes = std::size_t{1} << 20;

struct WriteOptions {
  bool index = true;
  std::string index_folder;  // empty: the sibling folder of the shard's
  bool durable = true;       // flush to the disk before publishing
  Existing existing = Existing::replace;
  std::size_t buffer_bytes = kWriteBufferBytes;
  std::uint64_t reserved_bytes = std::uint64_t{64} << 20;  // of disk space ahead, at most
  Compression compression = Compression::none;  // of the kinds there are, GZIP in members
  int level = kDefaultLevel;                    // of compression
  bool index_folder_is_tried = false;  // another shard's writer has found that it takes files
  bool hold_descriptor = true;  // false: at the cost of opening the file for each buffer written
};

// Where the index of a shard goes; empty without one.
std::string index_path_for(const std::string& shard_path, const WriteOptions& options);

// Whether a shard's index could be put there. Makes its folder, and tries it unless that was done
// for another one. Throws Error io.
void check_index_place(const std::string& index_path, bool folder_is_tried);

// One thread at a time. Nothing is seen under the shard's name, nor of its index, before publish();
// destroyed before that, nothing ever is. After any Error nothing more can be written or published.
class ShardWriter {
 public:
  // A link is followed: what it points at is replaced, not the link, and the new file has its
  // permissions. Throws Error io now, rather than after hours of writing, if the shard or its index
  // could not be put there: no such folder, not allowed, a name too long, a folder's or, unless it
  // may be replaced, taken.
  ShardWriter(const std::string& path, const WriteOptions& options);

  void write(std::span<const std::uint8_t> payload);
  // The valid ones of rows [first, end).
  void write(const RecordBatch& batch, std::size_t first, std::size_t end);

  // Whether a record of this size is taken without a system call.
  bool has_room(std::size_t payload_bytes) const noexcept {
    return buffer_.has_room(payload_bytes);
  }

  // Writes out what is buffered, completes the index and, if durable, flushes both to the disk.
  void finish();
  // Gives the index and then the shard their names; finish() comes first. If durable, the caller
  // flushes the folders of path() and index_path(), in which there may be many shards.
  void publish();

  // Another name in the same folder, for a shard that is not yet finished.
  void rename(const std::string& path);
  // Writes out what is buffered and lets go of the buffer until the next write.
  void drop_buffer();
  // Of the descriptors, too.
  void park();

  const std::string& path() const noexcept { return file_->path(); }
  const std::string& index_path() const noexcept { return index_path_; }  // empty: without one
  std::uint64_t record_count() const noexcept { return record_count_; }
  // Of frames: before they are compressed.
  std::uint64_t bytes() const noexcept { return written_bytes_ + buffer_.bytes().size(); }

 private:
  void write_through(std::span<const std::uint8_t> payload);
  void make_room();
  void write_out(std::span<const std::uint8_t> payload = {},
                 std::span<const std::uint8_t> footer = {});
  void refuse_after_failure() const;

  WriteOptions options_;
  const std::unique_ptr<Publication> file_;
  std::string index_path_;
  std::unique_ptr<Publication> index_file_;
  std::optional<MemberWriter> members_;  // if compressed
  FrameBuffer buffer_;
  std::uint64_t written_bytes_ = 0;
  std::uint64_t record_count_ = 0;
  std::vector<std::uint64_t> offsets_;
  bool failed_ = false;
};

}  // namespace tfrfast
