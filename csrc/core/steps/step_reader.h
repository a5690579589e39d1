// Step numbers in, Examples out, each put together from the parts of its episode's record that it
// needs. Nothing else of the record is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/read/reader.h"
#include "core/read/record_source.h"
#include "core/read/skipped_records.h"
#include "core/steps/step_file.h"

namespace tfrfast {

// Which steps around one its Example holds of a feature: `before` earlier and `after` later ones,
// `stride` apart, within its episode.
struct StepWindow {
  // What stands for steps beyond the ends of the episode.
  enum class Pad : std::uint8_t {
    repeat,    // the first or the last step
    zeros,     // zeros, or empty byte strings
    leave_out  // nothing: a step that needs them is not counted as one
  };
  std::uint32_t before = 0;
  std::uint32_t after = 0;
  std::uint32_t stride = 1;
  Pad pad = Pad::repeat;
};

struct StepOptions {
  std::map<std::string, std::string, std::less<>> names;   // of features, by those in the records
  std::map<std::string, StepWindow, std::less<>> windows;  // of features by their new names
  // Of features by their new names: what the map's entry holds in a step without values of them.
  std::map<std::string, std::string, std::less<>> absent;
};

// Like a Reader: immutable except for what it has skipped and remembers, and safe from many
// threads. Each part that is read is compared with a checksum in the step file.
class StepReader final : public RecordSource {
 public:
  // The file is of the reader's data. Throws Error invalid if a name or a window is of no feature
  // that the steps have, or two features have one name, and stale_index if damaged records were
  // left out of the file and the reader does not leave them out.
  StepReader(std::shared_ptr<const Reader> records, std::shared_ptr<const StepFile> file,
             StepOptions options);

  const StepFile& file() const noexcept { return *file_; }
  const Reader& records() const noexcept { return *records_; }

  // Which step of which record that is. The step exists.
  struct Place {
    std::uint64_t record = 0;
    std::uint32_t step = 0;
  };
  Place place(std::uint64_t step) const noexcept;
  // The number of the first step of each record and, at the end, of all steps. Where windows leave
  // steps out, they are not counted.
  const std::vector<std::uint64_t>& first_steps() const noexcept {
    return counted_.empty() ? file_->first_steps() : counted_;
  }

  const ShardSet& shards() const noexcept override { return records_->shards(); }
  const ReadOptions& options() const noexcept override { return records_->options(); }
  std::uint64_t record_count() const noexcept override { return first_steps().back(); }
  void describe_parts(std::vector<PartSpec>& parts) const override;
  std::uint64_t fingerprint() const override;
  std::size_t shard_of(std::uint64_t step, std::size_t hint = 0) const override {
    return records_->shard_of(place(step).record, hint);
  }
  std::uint64_t mean_record_bytes() const noexcept override { return mean_step_bytes_; }
  bool inflates() const noexcept override { return records_->inflates(); }
  bool is_remote() const noexcept override { return records_->is_remote(); }

  using RecordSource::read;
  std::shared_ptr<const RecordBatch> read(const ReadRequest& request) const override;
  std::shared_ptr<const RecordBatch> read_one(std::uint64_t step) const override;
  AnnouncedRows announce(std::span<const std::int64_t> steps, ReadAhead& lately) const override;
  Range read_range(std::uint64_t begin, std::uint64_t end,
                   bool is_announced = false) const override;
  std::uint64_t range_end(std::uint64_t begin, std::uint64_t target_bytes,
                          std::uint64_t max_steps) const override;
  std::vector<SkippedBytes> skipped() const override;

 private:
  class Planning;
  class Reading;
  struct Plan;
  struct Feature {
    const StepFeature* in_file = nullptr;
    std::string name;
    std::string key;                   // as an entry begins with it
    std::optional<StepWindow> window;  // without one, the step itself
    std::string valid_key;             // of the entry that says which steps are real
    std::string zeros;                 // what stands for one step
  };
  struct BadStep {
    std::size_t row = 0;
    Error error;
    std::optional<FileRange> damage;
  };
  struct Outcome {
    std::shared_ptr<RecordBatch> batch;
    std::vector<BadStep> bad;
  };

  void plan(std::span<const std::int64_t> steps, const Row* rows, Plan& plan) const;
  Outcome read_steps(const ReadRequest& request, bool stops_at_first) const;
  void leave_out(RecordBatch& batch, const std::vector<BadStep>& bad) const;

  const std::shared_ptr<const Reader> records_;
  const std::shared_ptr<const StepFile> file_;
  const StepOptions options_;
  std::vector<Feature> features_;
  struct Absent {
    std::string name;
    std::string entry;
  };
  std::vector<Absent> absent_;
  std::vector<std::uint64_t> counted_;  // first steps, if windows leave any out
  std::uint32_t left_before_ = 0;       // steps that are left out of each episode at its beginning
  std::uint64_t mean_step_bytes_ = 0;
  std::uint64_t fingerprint_ = 0;
  mutable std::optional<ReadAhead> read_ahead_;  // set once
  mutable SkippedRecords skipped_records_;
};

}  // namespace tfrfast
