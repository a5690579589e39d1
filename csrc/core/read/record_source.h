// Whatever has verified records by number: a Reader, whose records are the frames of shards, or
// something that makes records from parts of them. Loaders, scans and iterators read through it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/index/shard_set.h"
#include "core/read/frame_reader.h"
#include "core/read/read_ahead.h"
#include "core/read/record_batch.h"

namespace tfrfast {

class Reader;

struct ReadOptions {
  Verify verify = Verify::full;
  bool skip_damage = false;  // leave records with a bad payload out of batches
  unsigned threads = 1;      // for one read
};

// The arguments of RecordSource::read.
struct ReadRequest {
  std::span<const std::int64_t> records;
  const bool* valid = nullptr;  // which rows are real, copied to the batch; null: all
  unsigned threads = 1;
  // If another thread sets it, the call throws ReadCancelled.
  const std::atomic<bool>* cancelled = nullptr;
  bool is_announced = false;  // announce() was called before, and is held
};

struct ReadCancelled {};

// Bytes of a shard that were passed over.
struct SkippedBytes {
  std::string path;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t records = 0;  // that were lost in them; 0 if that is not known
};

// Immutable for its users, and safe from many threads.
class RecordSource {
 public:
  RecordSource() = default;
  virtual ~RecordSource() = default;
  RecordSource(const RecordSource&) = delete;
  RecordSource& operator=(const RecordSource&) = delete;

  // The files that the records lie in.
  virtual const ShardSet& shards() const noexcept = 0;
  // Itself, if each record is one frame of a shard; else null.
  virtual const Reader* reader() const noexcept { return nullptr; }
  virtual const ReadOptions& options() const noexcept = 0;
  virtual std::uint64_t record_count() const noexcept = 0;
  // Where the record numbers of each source begin, if these are the records of several end to end.
  virtual const std::vector<std::int64_t>& source_starts() const noexcept {
    return shards().source_starts();
  }
  // Equal numbers mean equal records, as far as names, sizes and counts tell.
  virtual std::uint64_t fingerprint() const { return shards().fingerprint(); }
  // The shard that a record lies in, which exists. Opens nothing. Fast if it is shard `hint`.
  virtual std::size_t shard_of(std::uint64_t record, std::size_t hint = 0) const = 0;

  // What one record takes of its shard, on average.
  virtual std::uint64_t mean_record_bytes() const noexcept = 0;
  // Whether any shard is compressed.
  virtual bool inflates() const noexcept = 0;
  // Whether any shard is in a storage where each request is a round trip, and not all of it has
  // come to this machine since.
  virtual bool is_far() const noexcept = 0;

  // The records asked for, in that order, duplicates included. Throws the Error of the first row
  // that cannot be delivered. With `skip_damage`, damaged rows are left out instead. Throws Error
  // memory if the records are more than memory can hold.
  virtual std::shared_ptr<const RecordBatch> read(const ReadRequest& request) const = 0;
  std::shared_ptr<const RecordBatch> read(std::span<const std::int64_t> records) const {
    return read(ReadRequest{records, nullptr, options().threads, nullptr});
  }

  // A batch of one record. Throws for damage even with `skip_damage`.
  virtual std::shared_ptr<const RecordBatch> read_one(std::uint64_t record) const = 0;

  // Announces records that will be read later, if `lately` says that they are cold. Opens far
  // shards, and so throws what the thread's WaitCheck throws; nothing else, as the read itself will
  // report the error. The source must outlive what is returned.
  virtual AnnouncedRows announce(std::span<const std::int64_t> records,
                                 ReadAhead& lately) const = 0;

  // Records [begin, end) up to the first that cannot be delivered, which `error` explains.
  struct Range {
    std::shared_ptr<const RecordBatch> batch;
    std::optional<Error> error;
    std::uint64_t next = 0;  // `end`, or the record after the one that failed
  };
  virtual Range read_range(std::uint64_t begin, std::uint64_t end,
                           bool is_announced = false) const = 0;

  // The end of a range that begins at `begin` and has about `target_bytes`, at least one record and
  // at most `max_records`. `begin` itself only at the end of the data.
  virtual std::uint64_t range_end(std::uint64_t begin, std::uint64_t target_bytes,
                                  std::uint64_t max_records) const = 0;

  // The structural damage that the indexes list, and the damaged records met so far.
  virtual std::vector<SkippedBytes> skipped() const = 0;
};

}  // namespace tfrfast
