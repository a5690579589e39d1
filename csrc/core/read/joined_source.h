// Joins the records of several sources, end to end. Each source reads its own records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/read/record_source.h"

namespace tfrfast {

// For sources that are not all Readers. Readers share a ShardSet instead, and need no extra copy.
class JoinedSource final : public RecordSource {
 public:
  // Needs at least one source. All sources must have the first source's options.
  explicit JoinedSource(std::vector<std::shared_ptr<const RecordSource>> sources);

  const ShardSet& shards() const noexcept override { return *shards_; }
  const ReadOptions& options() const noexcept override { return sources_.front()->options(); }
  std::uint64_t record_count() const noexcept override { return record_count_; }
  const std::vector<std::int64_t>& source_starts() const noexcept override { return *starts_; }
  void describe_parts(std::vector<PartSpec>& parts) const override;
  std::uint64_t fingerprint() const override;
  std::size_t shard_of(std::uint64_t record, std::size_t hint) const override;
  RecordOrigin origin(std::uint64_t record) const override;
  std::uint64_t mean_record_bytes() const noexcept override { return mean_record_bytes_; }
  bool inflates() const noexcept override;
  bool is_remote() const noexcept override;

  using RecordSource::read;
  std::shared_ptr<const RecordBatch> read(const ReadRequest& request) const override;
  std::shared_ptr<const RecordBatch> read_one(std::uint64_t record) const override;
  AnnouncedRows announce(std::span<const std::int64_t> records, ReadAhead& read_ahead,
                         std::uint64_t epoch = 0) const override;
  // Ends early, without an error, at the end of a source.
  Range read_range(std::uint64_t begin, std::uint64_t end,
                   bool is_announced = false) const override;
  std::uint64_t range_end(std::uint64_t begin, std::uint64_t target_bytes,
                          std::uint64_t max_records) const override;
  std::vector<SkippedBytes> skipped() const override;

 private:
  struct SourceRows {
    std::vector<std::size_t> rows;      // rows of the batch
    std::vector<std::int64_t> records;  // record numbers in the source
  };
  std::size_t source_of(std::uint64_t record) const noexcept;
  std::uint64_t start(std::size_t source) const noexcept {
    return static_cast<std::uint64_t>((*starts_)[source]);
  }
  std::vector<SourceRows> divide(std::span<const std::int64_t> records) const;
  // Turns a source's batch into a batch of the joined sources, with their record numbers.
  std::shared_ptr<RecordBatch> renumbered(std::shared_ptr<const RecordBatch> batch,
                                          std::size_t source) const;

  const std::vector<std::shared_ptr<const RecordSource>> sources_;
  std::shared_ptr<const ShardSet> shards_;
  std::vector<std::size_t> first_shards_;
  std::shared_ptr<const std::vector<std::int64_t>> starts_;
  std::uint64_t record_count_ = 0;
  std::uint64_t mean_record_bytes_ = 0;
};

}  // namespace tfrfast
