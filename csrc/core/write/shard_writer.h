// Writes a shard and its index, and publishes both when complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/codec/deflater.h"
#include "core/index/frame_samples.h"
#include "core/index/shard_index.h"
#include "core/read/record_batch.h"
#include "core/storage/local/folders.h"
#include "core/storage/local/published_file.h"
#include "core/write/frame_buffer.h"
#include "core/write/member_writer.h"

namespace tfrfast {

inline constexpr std::size_t kWriteBufferBytes = std::size_t{1} << 20;

struct WriteOptions {
  bool index = true;
  std::string index_folder;  // empty: the sibling of the shard's folder
  bool durable = true;       // flush to the disk before publishing
  Existing existing = Existing::replace;
  std::size_t buffer_bytes = kWriteBufferBytes;
  std::uint64_t reserved_bytes = std::uint64_t{64} << 20;  // max disk space to reserve
  Compression compression = Compression::none;             // or gzip, in members
  int level = kDefaultLevel;                               // of compression
  bool index_folder_is_tried = false;  // another shard's writer has checked the folder
  bool hold_descriptor = true;         // false: every write of a buffer opens the file again
};

// The folder of a shard's index, or empty without an index.
std::string index_folder_for(const std::string& shard_path, const WriteOptions& options);

// Makes the folder if necessary and, unless `is_tried`, checks that indexes can be written there.
// Throws Error io.
void check_folder_for_indexes(const std::string& folder, bool is_tried);

// One thread at a time. Neither the shard nor its index appears before publish(). A writer that is
// destroyed first publishes nothing. After any Error, nothing more can be written or published.
class ShardWriter {
 public:
  // Follows a link: publishing replaces the link's target, and the new file keeps the target's
  // permissions. Throws Error io now, rather than after hours of writing, if the shard or its index
  // could not be published: the folder does not exist, permissions are missing, or the name is too
  // long, names a folder, or is taken and must not be replaced.
  ShardWriter(const std::string& path, const WriteOptions& options);

  void write(std::span<const std::uint8_t> payload);
  // Writes the valid rows of [first, end).
  void write(const RecordBatch& batch, std::size_t first, std::size_t end);

  // Whether a record of this size fits into the buffer, so that writing it makes no system call.
  bool has_space(std::size_t payload_bytes) const noexcept {
    return buffer_.has_space(payload_bytes);
  }

  // Writes the buffer, completes the index and, if durable, flushes the shard to the disk.
  void finish();
  // Gives the shard its name, and adds the shard's index to the folder's index. If the disk has no
  // space for both, neither appears. If the index cannot be completed after the shard has its name,
  // the user gets a warning, once per folder of indexes, and no Error. Call finish() first. If
  // durable, the caller must flush the folders of path() and index_folder(), once for all shards in
  // them.
  void publish();

  // Changes the name of an unfinished shard, within the same folder.
  void rename(const std::string& path);
  // Writes and frees the buffer. The next write allocates a new one.
  void drop_buffer();
  // Like drop_buffer(), and closes the descriptors.
  void park();

  const std::string& path() const noexcept { return file_.path(); }
  // Empty without an index.
  const std::string& index_folder() const noexcept { return index_folder_; }
  std::uint64_t record_count() const noexcept { return record_count_; }
  // The total size of all frames, before compression.
  std::uint64_t bytes() const noexcept { return written_bytes_ + buffer_.bytes().size(); }

 private:
  void write_through(std::span<const std::uint8_t> payload);
  void make_space();
  void write_out(std::span<const std::uint8_t> payload = {},
                 std::span<const std::uint8_t> footer = {});
  void refuse_after_failure() const;
  void warn_about_index(const Error& error) const;

  WriteOptions options_;
  const std::string index_folder_;
  const NewFolders new_folders_;  // for the index
  PublishedFile file_;
  std::shared_ptr<const ShardIndex> index_;  // null until complete
  std::optional<MemberWriter> members_;      // only for compressed shards
  FrameBuffer buffer_;
  std::uint64_t written_bytes_ = 0;
  std::uint64_t record_count_ = 0;
  std::vector<std::uint64_t> offsets_;
  FrameSamples samples_;
  bool failed_ = false;
};

}  // namespace tfrfast
