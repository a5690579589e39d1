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

// Reads in requests of the size that suits the storage, and reads ahead where each is a round trip.
// Keeps only the current record, so a million small shards can be read one after the other. One
// thread.
class RecordStream {
 public:
  struct Options {
    std::string access;  // how to reach the storage
    std::uint64_t max_ahead_bytes = std::uint64_t{256} << 20;
  };

  // Begins at the frame at `offset`, which is that of record `record`. A compressed shard is
  // inflated from its beginning up to there. Throws Error io.
  explicit RecordStream(const std::string& path, std::uint64_t offset = 0,
                        std::uint64_t record = 0);
  RecordStream(const std::string& path, std::uint64_t offset, std::uint64_t record,
               const Options& options);

  // Asks for the first bytes, if each request is a round trip, and waits for nothing. Call it at
  // most once, before next(). Never fails.
  void announce() noexcept;

  // Verifies the next record. Its bytes are valid until the next call. False at the end of the
  // shard. Throws Error corrupt, truncated, memory or io.
  bool next(std::span<const std::uint8_t>* payload);

  std::uint64_t offset() const noexcept { return offset_; }  // uncompressed, of the next frame
  std::uint64_t record() const noexcept { return record_; }  // its number in the shard
  const FileFacts& facts() const noexcept { return stored_->facts(); }  // of the file, when opened

 private:
  void begin();
  // The bytes [offset_, offset_ + count), which the shard has.
  const std::uint8_t* bytes_ahead(std::uint64_t count);
  std::string where() const;

  void throw_bad_ending() const;

  std::shared_ptr<const StoredFile> stored_;
  LookAhead ahead_;                      // of a shard that is not compressed
  std::unique_ptr<ShardWalker> walker_;  // null until the first call of next()
  const StoredFile* file_ = nullptr;     // the walker's: if compressed, not the one that is stored
  std::uint64_t offset_;
  std::uint64_t record_;
  PooledBuffer buffer_;
  std::uint64_t buffer_begin_ = 0;
  std::uint64_t buffer_end_ = 0;
};

}  // namespace tfrfast
