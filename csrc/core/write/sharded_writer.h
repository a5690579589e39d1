// Writes a set of shards, `prefix-00000-of-00064` and so on, and publishes the shards together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/write/shard_writer.h"

namespace tfrfast {

std::string shard_name(const std::string& prefix, std::size_t number, std::size_t count);

// The files named like shards of `prefix`, of a set of any size.
std::vector<std::string> list_shards(const std::string& prefix);

// Throws the foreseeable Errors io of publishing `count` shards of `prefix` with their indexes (see
// write_checks.h). A count of 0 means that the count is unknown. The folder of the shards must
// exist. The folder of the indexes is made.
void check_shard_places(const std::string& prefix, std::size_t count, const WriteOptions& options);

struct ShardedOptions {
  // Set exactly one of the two. With a count, record i goes to shard i % shard_count. With a size,
  // a shard is full if the next record would exceed max_shard_bytes, but every shard has at least
  // one record.
  std::size_t shard_count = 0;
  std::uint64_t max_shard_bytes = 0;
  WriteOptions shard;
};

// One thread at a time. No shard appears before close(). A writer that is destroyed first publishes
// nothing. After any Error, nothing more can be written or published.
class ShardedWriter {
 public:
  // Makes the folder of `prefix` if necessary, and removes the new folder if nothing is published.
  // Throws Error io like ShardWriter, and EEXIST if shards of the prefix, of a set of any size,
  // exist and must not be replaced: a glob would mix old and new shards.
  ShardedWriter(std::string prefix, const ShardedOptions& options);

  void write(std::span<const std::uint8_t> payload);
  void write(const RecordBatch& batch, std::size_t first, std::size_t end);
  bool has_space(std::size_t payload_bytes) const noexcept;

  // Completes all shards, then publishes all. Each shard appears whole or not at all. So does the
  // set, unless the system fails between the first and the last shard. At the end, removes old
  // shards of the prefix that were not overwritten.
  void close();

  const std::string& prefix() const noexcept { return prefix_; }
  std::vector<std::string> paths() const;  // final paths after close()
  // The folder of the shards' indexes, or empty without indexes.
  const std::string& index_folder() const noexcept { return shards_.front()->index_folder(); }
  std::uint64_t record_count() const noexcept { return record_count_; }
  std::uint64_t bytes() const noexcept;

 private:
  ShardWriter& shard_for(std::size_t payload_bytes);
  void add_shard();
  void finish_all();
  void publish_all();
  void remove_others();

  std::string prefix_;
  const NewFolders new_folders_;
  const NewFolders new_index_folders_;
  ShardedOptions options_;
  std::vector<std::unique_ptr<ShardWriter>> shards_;
  std::size_t next_ = 0;  // round robin
  std::uint64_t record_count_ = 0;
};

}  // namespace tfrfast
