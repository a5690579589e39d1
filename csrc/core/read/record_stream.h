// Reads a shard's records in order, without an index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/shard/walker.h"
#include "core/storage/storage_options.h"

namespace tfrfast {

// Each request has the size that suits the storage. Reads ahead if each request is a round trip.
// Keeps only the current record, so a million small shards can be read one after the other. One
// thread at a time.
class RecordStream {
 public:
  struct Options {
    StorageOptions storage;  // options of the storage
    std::uint64_t max_ahead_bytes = std::uint64_t{256} << 20;
  };

  // Begins at the frame at `offset`, whose record number is `record`. A compressed shard is
  // inflated from its beginning. Throws Error io.
  explicit RecordStream(const std::string& path, std::uint64_t offset = 0,
                        std::uint64_t record = 0);
  RecordStream(const std::string& path, std::uint64_t offset, std::uint64_t record,
               const Options& options);

  // Announces the first bytes if each request is a round trip. Does not wait. Call at most once,
  // before next(). Never fails.
  void announce() noexcept;

  // Reads and verifies the next record. The payload is valid until the next call. False at the end
  // of the shard. Throws Error corrupt, truncated, memory or io.
  bool next(std::span<const std::uint8_t>* payload);

  // Offset of the next frame, uncompressed.
  std::uint64_t offset() const noexcept { return offset_; }
  // Number of the next record in the shard.
  std::uint64_t record() const noexcept { return record_; }
  // The file's facts at opening.
  const FileFacts& facts() const noexcept { return stored_->facts(); }

 private:
  void begin();
  // Returns the bytes [offset_, offset_ + count), which the shard must have. The file is not
  // mapped.
  const std::uint8_t* bytes_ahead(std::size_t count);
  std::string where() const;

  void throw_bad_ending() const;

  std::shared_ptr<const StoredFile> stored_;
  LookAhead ahead_;                      // until there is a walker
  std::unique_ptr<ShardWalker> walker_;  // null until the first call of next()
  const StoredFile* file_ = nullptr;     // the walker's file; differs from stored_ if compressed
  std::uint64_t offset_;
  std::uint64_t record_;
};

}  // namespace tfrfast
