// Writes one shard and its index, and publishes both when they are complete.
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
#include "core/storage/publication.h"
#include "core/storage/remote/outgoing_parts.h"
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
  std::uint64_t reserved_bytes = std::uint64_t{64} << 20;  // reserve at most so much disk space
  Compression compression = Compression::none;             // or gzip, in members
  int level = kDefaultLevel;                               // of compression
  bool index_folder_is_tried = false;                      // another shard's writer has checked it
  bool hold_descriptor = true;  // if false, each write of a buffer opens the file again
  // If there is one, shards become parts of it, and only their indexes are published.
  std::shared_ptr<OutgoingParts> outgoing = nullptr;
};

// The folder of a shard's index; empty if it gets none.
std::string index_folder_for(const std::string& shard_path, const WriteOptions& options);

// Checks that indexes can be kept in a folder. Makes it, and tries it unless `is_tried`. Throws
// Error io.
void check_folder_for_indexes(const std::string& folder, bool is_tried);

// One thread at a time. Nothing of the shard and its index appears before
// publish(). If it is destroyed before that, nothing ever does. After any Error nothing more can be
// written or published.
class ShardWriter {
 public:
  // A link is followed: what it points at is replaced, not the link, and the new file keeps its
  // permissions. Throws Error io now, rather than after hours of writing, if the shard or its index
  // could not be published: there is no such folder, permissions are missing, or the name is too
  // long, that of a folder, or taken and not to be replaced.
  ShardWriter(const std::string& path, const WriteOptions& options);

  void write(std::span<const std::uint8_t> payload);
  // Writes the valid ones of rows [first, end).
  void write(const RecordBatch& batch, std::size_t first, std::size_t end);

  // Whether a record of this size fits the buffer, so that writing it makes no system call.
  bool has_room(std::size_t payload_bytes) const noexcept {
    return buffer_.has_room(payload_bytes);
  }

  // Writes the buffer, completes the index and, if durable, flushes the shard to the disk.
  void finish();
  // Gives the shard its name, and adds its index to that of the folder. Without room for both there
  // is neither. If the index cannot be completed after the shard has its name, there is a warning,
  // once for a folder of indexes, and no Error. Call finish() first. If durable, the caller must
  // flush the folders of path() and index_folder(), once for all shards in them.
  void publish();

  // Gives a shard that is not finished yet another name in the same folder.
  void rename(const std::string& path);
  // Writes the buffer and frees it until the next write.
  void drop_buffer();
  // The same, and closes the descriptors.
  void park();

  const std::string& path() const noexcept { return file_->path(); }
  const std::string& index_folder() const noexcept { return index_folder_; }  // empty: no index
  std::uint64_t record_count() const noexcept { return record_count_; }
  // The bytes of all frames, before compression.
  std::uint64_t bytes() const noexcept { return written_bytes_ + buffer_.bytes().size(); }

 private:
  void write_through(std::span<const std::uint8_t> payload);
  void make_room();
  void write_out(std::span<const std::uint8_t> payload = {},
                 std::span<const std::uint8_t> footer = {});
  void refuse_after_failure() const;
  void warn_about_index(const Error& error) const;

  WriteOptions options_;
  const std::string index_folder_;
  const NewFolders new_folders_;  // for the index
  const std::unique_ptr<Publication> file_;
  std::shared_ptr<const ShardIndex> index_;  // once it is complete
  std::optional<MemberWriter> members_;      // if compressed
  FrameBuffer buffer_;
  std::uint64_t written_bytes_ = 0;
  std::uint64_t record_count_ = 0;
  std::vector<std::uint64_t> offsets_;
  FrameSamples samples_;
  bool failed_ = false;
};

}  // namespace tfrfast
