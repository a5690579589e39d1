// Record numbers in, verified records out.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/index/shard_set.h"
#include "core/read/frame_reader.h"
#include "core/read/read_ahead.h"
#include "core/read/record_batch.h"

namespace tfrfast {

struct ReadOptions {
  Verify verify = Verify::full;
  bool skip_damage = false;  // leave records with a bad payload out of batches
  unsigned threads = 1;      // for one read
};

// One call of Reader::read.
struct ReadRequest {
  std::span<const std::int64_t> records;
  const bool* valid = nullptr;  // which rows are real, for the batch to tell; null: all
  unsigned threads = 1;
  const std::atomic<bool>* cancelled =
      nullptr;                // set by anyone, it ends the call with ReadCancelled
  bool is_announced = false;  // by announce(), some time ago
};

struct ReadCancelled {};

// Bytes of a shard that were passed over.
struct SkippedBytes {
  std::string path;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t records = 0;  // lost in them; 0 where that cannot be told
};

// Immutable but for the list of skipped records and what it remembers of cold ones; safe from many
// threads.
class Reader {
 public:
  Reader(std::shared_ptr<const ShardSet> shards, const ReadOptions& options);

  const ShardSet& shards() const noexcept { return *shards_; }
  std::uint64_t record_count() const noexcept { return shards_->record_count(); }

  // Of a record with its frame, on the average over all shards.
  std::uint64_t mean_record_bytes() const noexcept { return mean_record_bytes_; }

  // Whether any shard is compressed.
  bool inflates() const noexcept { return inflates_; }
  // Whether any shard lies where each request is a round trip.
  bool is_far() const noexcept { return is_far_; }

  // Where the index says a record lies. Throws Error out_of_range.
  Row locate(std::uint64_t record) const;

  // The records asked for, in that order, duplicates included. Throws the Error of the first row
  // that cannot be delivered; under `skip_damage` damaged rows are left out instead. Error memory
  // if they are more than memory can hold.
  std::shared_ptr<const RecordBatch> read(std::span<const std::int64_t> records) const {
    return read(ReadRequest{records, nullptr, options_.threads, nullptr});
  }
  std::shared_ptr<const RecordBatch> read(const ReadRequest& request) const;

  // Where many records lie: fills one Row for each, in the order given. Throws like locate().
  void locate(std::span<const std::int64_t> records, Row* rows) const;

  // Announces records that will be read later, if `lately` tells that they are cold. How many
  // bytes. Never throws: whoever reads gets the error.
  std::uint64_t announce(std::span<const std::int64_t> records, ReadAhead& lately) const noexcept;
  // The same of rows that will be read now, to go by what this reader has found. read() does so
  // itself.
  void announce(std::span<const Row> rows) const noexcept;

  // One record, into memory for the payload that locate() says; check_room() tells before whether
  // there can be so much. Throws even under `skip_damage`.
  void read_into(const Row& row, std::uint8_t* out) const;

  // Records [begin, end) up to the first that cannot be delivered, which `error` explains.
  struct Range {
    std::shared_ptr<const RecordBatch> batch;
    std::optional<Error> error;
    std::uint64_t next = 0;  // `end`, or the record behind the one that failed
  };
  Range read_range(std::uint64_t begin, std::uint64_t end) const;

  // The end of a range from `begin` of about `target_bytes`, one record at least, `max_records` at
  // most; `begin` itself only at the end of the data.
  std::uint64_t range_end(std::uint64_t begin, std::uint64_t target_bytes,
                          std::uint64_t max_records) const;

  // The structural damage that the indexes list, and the damaged records met so far.
  std::vector<SkippedBytes> skipped() const;

 private:
  struct Outcome {
    std::shared_ptr<RecordBatch> batch;
    std::vector<BadRow> bad;
  };
  // record_at(row) -> record number. Of `request`, all but the records.
  template <class RecordAt>
  Outcome read_rows(std::size_t count, const RecordAt& record_at, const ReadRequest& request,
                    AtBadRow at_bad_row) const;
  template <class RecordAt>
  void locate_rows(std::size_t first, std::size_t end, const RecordAt& record_at, Row* rows) const;
  void leave_out(RecordBatch& batch, const std::vector<BadRow>& bad) const;
  void check_range(std::uint64_t record) const;

  std::shared_ptr<const ShardSet> shards_;
  ReadOptions options_;
  std::uint64_t mean_record_bytes_ = 0;
  bool inflates_ = false;
  bool is_far_ = false;
  mutable std::optional<ReadAhead> read_ahead_;  // set once
  mutable std::map<std::pair<std::string, std::uint64_t>, SkippedBytes> skipped_payloads_;
};

}  // namespace tfrfast
