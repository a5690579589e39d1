// An interface to verified records by number. A Reader's records are the frames of shards; a
// StepReader assembles records from parts of frames. Loaders, scans and iterators read from a
// source.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/index/shard_set.h"
#include "core/read/frame_reader.h"
#include "core/read/read_ahead.h"
#include "core/read/record_batch.h"
#include "core/read/record_origin.h"

namespace tfrfast {

class Reader;
struct PartSpec;

struct ReadOptions {
  Verify verify = Verify::full;
  bool skip_damage = false;  // leave records with a bad payload out of batches
  unsigned threads = 1;      // threads of one read
};

// The arguments of RecordSource::read.
struct ReadRequest {
  std::span<const std::int64_t> records;
  const bool* valid = nullptr;  // which rows are real, copied to the batch; null: all rows
  unsigned threads = 1;
  // Another thread may set the flag. Then the call throws ReadCancelled.
  const std::atomic<bool>* cancelled = nullptr;
  bool is_announced = false;  // the caller has called announce() and holds the result
  std::uint64_t epoch = 0;    // of draws that decide what a record holds
};

struct ReadCancelled {};

// Bytes of a shard that were skipped.
struct SkippedBytes {
  std::string path;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t records = 0;  // lost records in the bytes; 0 if unknown
};

// Immutable for users. Safe from many threads.
class RecordSource {
 public:
  RecordSource() = default;
  virtual ~RecordSource() = default;
  RecordSource(const RecordSource&) = delete;
  RecordSource& operator=(const RecordSource&) = delete;

  // The files that hold the records.
  virtual const ShardSet& shards() const noexcept = 0;
  // The source as a Reader, if each record is a frame of a shard. Otherwise null.
  virtual const Reader* reader() const noexcept { return nullptr; }
  virtual const ReadOptions& options() const noexcept = 0;
  virtual std::uint64_t record_count() const noexcept = 0;
  // The first record number of each source, if several sources are joined end to end.
  virtual const std::vector<std::int64_t>& source_starts() const noexcept {
    return shards().source_starts();
  }
  // Appends a description of how the records of each part of the shards are read.
  virtual void describe_parts(std::vector<PartSpec>& parts) const = 0;
  // Equal fingerprints mean equal records, judging by names, sizes and counts.
  virtual std::uint64_t fingerprint() const { return shards().fingerprint(); }
  // The shard of an existing record. Opens nothing. Fast if the answer is `hint`.
  virtual std::size_t shard_of(std::uint64_t record, std::size_t hint) const = 0;
  // The origin of an existing record. Opens nothing.
  virtual RecordOrigin origin(std::uint64_t record) const = 0;

  // The average size of a record in its shard.
  virtual std::uint64_t mean_record_bytes() const noexcept = 0;
  // Whether any shard is compressed, and has no whole mirror on the disk.
  virtual bool inflates() const noexcept = 0;
  // Whether any shard is in a storage where each request is a round trip, and is not yet copied to
  // this machine.
  virtual bool is_remote() const noexcept = 0;

  // Returns the requested records, in the requested order, with duplicates. Throws the Error of the
  // first row that cannot be delivered. With `skip_damage`, damaged rows are left out instead.
  // Throws Error memory if the records exceed memory.
  virtual std::shared_ptr<const RecordBatch> read(const ReadRequest& request) const = 0;
  std::shared_ptr<const RecordBatch> read(std::span<const std::int64_t> records) const {
    return read(ReadRequest{records, nullptr, options().threads, nullptr});
  }

  // A batch of one record. Throws for damage even with `skip_damage`.
  virtual std::shared_ptr<const RecordBatch> read_one(std::uint64_t record) const = 0;

  // Announces records that will be read later, if `read_ahead` says that records are cold. Opens
  // remote shards, and throws only the exceptions of the thread's WaitCheck: the read itself will
  // report errors. The source must outlive the result.
  virtual AnnouncedRows announce(std::span<const std::int64_t> records, ReadAhead& read_ahead,
                                 std::uint64_t epoch = 0) const = 0;

  // Records [begin, end) up to the first record that cannot be delivered. `error` explains that
  // record.
  struct Range {
    std::shared_ptr<const RecordBatch> batch;
    std::optional<Error> error;
    std::uint64_t next = 0;  // `end`, or the record after the failed record
  };
  virtual Range read_range(std::uint64_t begin, std::uint64_t end,
                           bool is_announced = false) const = 0;

  // The end of a range from `begin` of about `target_bytes`, with at least one record and at most
  // `max_records`. Returns `begin` only at the end of the data.
  virtual std::uint64_t range_end(std::uint64_t begin, std::uint64_t target_bytes,
                                  std::uint64_t max_records) const = 0;

  // The structural damage listed in the indexes, and the damaged records read so far.
  virtual std::vector<SkippedBytes> skipped() const = 0;
};

// The origins of a source's records, for errors.
inline FindOrigin origins_in(std::shared_ptr<const RecordSource> source) {
  return [source = std::move(source)](std::int64_t record) {
    return source->origin(static_cast<std::uint64_t>(record));
  };
}

}  // namespace tfrfast
