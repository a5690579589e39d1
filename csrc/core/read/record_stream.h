// One shard's records in order, without an index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/base/pool.h"
#include "core/shard/walker.h"

namespace tfrfast {

// Reads in requests of the size that suits the storage. Keeps only the current record, so a million
// small shards can be read one after the other. One thread.
class RecordStream {
 public:
  // Begins at the frame at `offset`, which is that of record `record`. A compressed shard is
  // inflated from its beginning up to there. Throws Error io.
  explicit RecordStream(const std::string& path, std::uint64_t offset = 0,
                        std::uint64_t record = 0);

  // Verifies the next record. Its bytes are valid until the next call. False at the end of the
  // shard. Throws Error corrupt, truncated, memory or io.
  bool next(std::span<const std::uint8_t>* payload);

  std::uint64_t offset() const noexcept { return offset_; }  // uncompressed, of the next frame
  std::uint64_t record() const noexcept { return record_; }  // its number in the shard

 private:
  // The bytes [offset_, offset_ + count), which the shard has.
  const std::uint8_t* bytes_ahead(std::uint64_t count);
  std::string where() const;

  void throw_bad_ending() const;

  std::unique_ptr<ShardWalker> walker_;
  const StoredFile* file_;  // the walker's
  std::uint64_t offset_;
  std::uint64_t record_;
  PooledBuffer buffer_;
  std::uint64_t buffer_begin_ = 0;
  std::uint64_t buffer_end_ = 0;
  std::uint64_t announced_end_ = 0;
};

}  // namespace tfrfast
