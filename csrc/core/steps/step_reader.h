// Turns step numbers into Examples. Each Example is assembled from the parts of its episode's
// record that the step needs, and only these parts are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/read/file_source.h"
#include "core/read/reader.h"
#include "core/steps/step_choice.h"
#include "core/steps/step_contents.h"
#include "core/steps/step_file.h"

namespace tfrfast {

// Like a Reader: immutable except for the list of skipped records and the memory of cold records.
// Safe from many threads. Every part that is read is compared with a checksum in the step file.
class StepReader final : public FileSource {
 public:
  // `file` must belong to the reader's data. Throws Error invalid like StepContents, and
  // stale_index if the file lacks damaged records that the reader does not skip.
  StepReader(std::shared_ptr<const Reader> records, std::shared_ptr<const StepFile> file,
             StepOptions options);

  const StepOptions& step_options() const noexcept { return options_; }
  // The steps of the same file with other options.
  std::shared_ptr<const StepReader> with(StepOptions options) const {
    return std::make_shared<const StepReader>(records_, file_, std::move(options));
  }

  const StepFile& file() const noexcept { return *file_; }
  const Reader& records() const noexcept { return *records_; }

  // The record of an existing step, and the step's number in the record.
  struct StepOrigin {
    std::uint64_t record = 0;
    std::uint32_t step = 0;
  };
  StepOrigin place(std::uint64_t step) const noexcept;
  // The number of each record's first step, then the number of all steps. Steps that windows leave
  // out, or that are not chosen, do not count.
  const std::vector<std::uint64_t>& first_steps() const noexcept {
    return choice_ ? first_chosen_ : unchosen_steps();
  }
  // The steps' features along the axis.
  const std::vector<StepContents::Feature>& features() const noexcept { return contents_.features; }

  const ShardSet& shards() const noexcept override { return records_->shards(); }
  const ReadOptions& options() const noexcept override { return records_->options(); }
  std::uint64_t record_count() const noexcept override { return first_steps().back(); }
  void describe_parts(std::vector<PartSpec>& parts) const override;
  std::uint64_t fingerprint() const override { return fingerprint_; }
  std::size_t shard_of(std::uint64_t step, std::size_t hint) const override {
    return records_->shard_of(place(step).record, hint);
  }
  RecordOrigin origin(std::uint64_t step) const override;
  std::uint64_t mean_record_bytes() const noexcept override { return mean_step_bytes_; }
  bool inflates() const noexcept override { return records_->inflates(); }
  bool is_remote() const noexcept override { return records_->is_remote(); }

  std::shared_ptr<const RecordBatch> read_one(std::uint64_t step) const override;
  AnnouncedRows announce(std::span<const std::int64_t> steps, ReadAhead& read_ahead,
                         std::uint64_t epoch = 0) const override;
  std::uint64_t range_end(std::uint64_t begin, std::uint64_t target_bytes,
                          std::uint64_t max_steps) const override;
  std::vector<SkippedBytes> skipped() const override;

 private:
  class Planning;
  class Reading;
  struct Plan;

  const std::vector<std::uint64_t>& unchosen_steps() const noexcept {
    return counted_.empty() ? file_->first_steps() : counted_;
  }
  Plan plan(std::span<const std::int64_t> steps, const std::vector<Row>& rows,
            std::uint64_t epoch) const;
  Rows read_rows(const ReadRequest& request) const override;

  const std::shared_ptr<const Reader> records_;
  const std::shared_ptr<const StepFile> file_;
  const StepOptions options_;
  const StepContents contents_;
  std::vector<std::uint64_t> counted_;  // first steps; empty unless windows leave steps out
  std::optional<StepChoice> choice_;
  std::vector<std::uint64_t> first_chosen_;
  std::uint64_t mean_step_bytes_ = 0;
  std::uint64_t fingerprint_ = 0;
  mutable std::optional<ReadAhead> read_ahead_;  // set once
};

}  // namespace tfrfast
