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

// The arguments of Reader::read.
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

// Immutable except for the list of skipped records and what it remembers about cold ones. Safe from
// many threads.
class Reader {
 public:
  Reader(std::shared_ptr<const ShardSet> shards, const ReadOptions& options);

  const ShardSet& shards() const noexcept { return *shards_; }
  const ReadOptions& options() const noexcept { return options_; }
  std::uint64_t record_count() const noexcept { return shards_->record_count(); }

  // The size of a record with its frame, on average over all shards.
  std::uint64_t mean_record_bytes() const noexcept { return mean_record_bytes_; }

  // Whether any shard is compressed.
  bool inflates() const noexcept { return inflates_; }
  // Whether any shard is in a storage where each request is a round trip, and not all of it has
  // come to this machine since.
  bool is_far() const noexcept;

  // Where the index says a record is. Opens its shard if nobody has. Throws Error out_of_range and
  // what opening throws.
  Row locate(std::uint64_t record) const;

  // The records asked for, in that order, duplicates included. Throws the Error of the first row
  // that cannot be delivered. With `skip_damage`, damaged rows are left out instead. Throws Error
  // memory if the records are more than memory can hold.
  std::shared_ptr<const RecordBatch> read(std::span<const std::int64_t> records) const {
    return read(ReadRequest{records, nullptr, options_.threads, nullptr});
  }
  std::shared_ptr<const RecordBatch> read(const ReadRequest& request) const;

  // Where many records are: fills one Row for each, in the order given. Throws like locate().
  void locate(std::span<const std::int64_t> records, Row* rows) const;

  // Announces records that will be read later, if `lately` says that they are cold. Opens far
  // shards, and so throws what the thread's WaitCheck throws; nothing else, as the read itself will
  // report the error. The reader must outlive what is returned.
  AnnouncedRows announce(std::span<const std::int64_t> records, ReadAhead& lately) const;
  // The same for rows that will be read now, judging by what this reader has found. read() does
  // this itself.
  Announcements announce(std::span<const Row> rows) const noexcept;

  // Reads one record into `out`, which has room for the payload that locate() found. Call
  // check_room() before allocating it. Throws for damage even with `skip_damage`. `batch_bytes` are
  // those of the batch that it becomes part of, if any.
  void read_into(const Row& row, std::uint8_t* out, std::uint64_t batch_bytes = 0) const;

  // Records [begin, end) up to the first that cannot be delivered, which `error` explains.
  struct Range {
    std::shared_ptr<const RecordBatch> batch;
    std::optional<Error> error;
    std::uint64_t next = 0;  // `end`, or the record after the one that failed
  };
  Range read_range(std::uint64_t begin, std::uint64_t end, bool is_announced = false) const;

  // The end of a range that begins at `begin` and has about `target_bytes`, at least one record and
  // at most `max_records`. `begin` itself only at the end of the data.
  std::uint64_t range_end(std::uint64_t begin, std::uint64_t target_bytes,
                          std::uint64_t max_records) const;

  // The structural damage that the indexes list, and the damaged records met so far.
  std::vector<SkippedBytes> skipped() const;

 private:
  struct Outcome {
    std::shared_ptr<RecordBatch> batch;
    std::vector<BadRow> bad;
  };
  // record_at(row) is a record number. Uses all of `request` but its records.
  template <class RecordAt>
  Outcome read_rows(std::size_t count, const RecordAt& record_at, const ReadRequest& request,
                    AtBadRow at_bad_row) const;
  template <class RecordAt>
  void locate_rows(std::size_t first, std::size_t end, const RecordAt& record_at, Row* rows) const;
  bool all_are_open() const noexcept;
  // Opens those of these records' shards that are far and were never read, all at once.
  template <class RecordAt>
  void open_far(std::size_t count, const RecordAt& record_at) const;
  void leave_out(RecordBatch& batch, const std::vector<BadRow>& bad) const;
  void check_range(std::uint64_t record) const;
  // Where the state of files does not tell, compares the frames of one of these records' shards
  // with its index, if that shard was read before and never compared. So the first batches do not
  // wait for it, and no other waits for more than one. Throws Error stale_index.
  template <class RecordAt>
  void compare_samples(std::size_t count, const RecordAt& record_at) const;

  std::shared_ptr<const ShardSet> shards_;
  ReadOptions options_;
  std::uint64_t mean_record_bytes_ = 0;
  bool inflates_ = false;
  bool is_far_ = false;                              // when it was opened
  mutable std::atomic<std::size_t> near_shards_{0};  // those before it, at least, are near now
  mutable std::atomic<std::size_t> open_shards_{0};  // those before it, at least, are open
  enum class Samples : std::uint8_t { unread, read_before, compared };
  // Of each shard, and how many are to be compared yet; null and 0 where the state of files tells.
  mutable std::unique_ptr<std::atomic<Samples>[]> samples_;
  mutable std::atomic<std::int64_t> samples_left_{0};
  mutable std::optional<ReadAhead> read_ahead_;  // set once
  mutable std::map<std::pair<std::string, std::uint64_t>, SkippedBytes> skipped_payloads_;
};

}  // namespace tfrfast
