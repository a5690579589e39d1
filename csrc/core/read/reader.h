// Turns record numbers into verified records.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/index/shard_set.h"
#include "core/read/file_source.h"
#include "core/read/frame_reader.h"
#include "core/read/read_ahead.h"
#include "core/read/record_batch.h"
#include "core/read/record_source.h"

namespace tfrfast {

// Immutable except for the list of skipped records and the memory of cold records. Safe from many
// threads.
class Reader final : public FileSource {
 public:
  Reader(std::shared_ptr<const ShardSet> shards, const ReadOptions& options);

  const ShardSet& shards() const noexcept override { return *shards_; }
  const Reader* reader() const noexcept override { return this; }
  const ReadOptions& options() const noexcept override { return options_; }
  std::uint64_t record_count() const noexcept override { return shards_->record_count(); }
  void describe_parts(std::vector<PartSpec>& parts) const override;
  std::size_t shard_of(std::uint64_t record, std::size_t hint) const override {
    return shards_->place(record, hint).shard;
  }
  RecordOrigin origin(std::uint64_t record) const override;

  // The mean over all shards, frames included.
  std::uint64_t mean_record_bytes() const noexcept override { return mean_record_bytes_; }
  bool inflates() const noexcept override;
  bool is_remote() const noexcept override;

  // Returns the indexed place of a record. Opens the record's shard if necessary. Throws Error
  // out_of_range and the errors of opening.
  Row locate(std::uint64_t record) const;

  std::shared_ptr<const RecordBatch> read_one(std::uint64_t record) const override;

  // Locates many records: fills one Row per record, in order. Throws like locate() above.
  void locate(std::span<const std::int64_t> records, Row* rows) const;

  AnnouncedRows announce(std::span<const std::int64_t> records, ReadAhead& read_ahead,
                         std::uint64_t epoch = 0) const override;
  // Announces rows that will be read now, if recent reads were cold. read() calls this itself.
  Announcements announce(std::span<const Row> rows, ReadAhead& read_ahead) const noexcept;

  // Reads one record into `out`, which must have space for the payload that locate() found. Call
  // check_space() before allocating the space. Throws for damage even with `skip_damage`.
  // `batch_bytes` is the size of the batch that the record joins, if any.
  void read_into(const Row& row, std::uint8_t* out, std::uint64_t batch_bytes = 0) const;

  std::uint64_t range_end(std::uint64_t begin, std::uint64_t target_bytes,
                          std::uint64_t max_records) const override;
  std::vector<SkippedBytes> skipped() const override;

 private:
  Rows read_rows(const ReadRequest& request) const override;
  void locate_rows(std::span<const std::int64_t> records, Row* rows) const;
  bool all_are_open() const noexcept;
  // Opens the remote shards of these records that were never read, all at once.
  void open_remote(std::span<const std::int64_t> records) const;
  void check_range(std::uint64_t record) const;
  // Does nothing if the files' state proves that the index fits. Otherwise compares some frames of
  // one shard of these records with the index. Picks a shard that was read before and never
  // compared. So the first batches wait for no comparison, and later batches wait for at most one.
  // Throws Error stale_index.
  void compare_samples(std::span<const std::int64_t> records) const;

  std::shared_ptr<const ShardSet> shards_;
  ReadOptions options_;
  std::uint64_t mean_record_bytes_ = 0;
  bool is_remote_ = false;  // at opening
  // a lower bound: all shards before this number are plain, or read from a whole Mirror
  mutable std::atomic<std::size_t> plain_shards_{0};
  // a lower bound: all shards before this number are local now
  mutable std::atomic<std::size_t> local_shards_{0};
  // a lower bound: all shards before this number are open
  mutable std::atomic<std::size_t> open_shards_{0};
  enum class Samples : std::uint8_t { unread, read_before, compared };
  // One for each shard, and the number of shards to compare. Null and 0 if the files' state is
  // proof.
  mutable std::unique_ptr<std::atomic<Samples>[]> samples_;
  mutable std::atomic<std::int64_t> samples_left_{0};
  mutable std::optional<ReadAhead> read_ahead_;  // set once
};

}  // namespace tfrfast
