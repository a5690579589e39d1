// An open step file.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/index/shard_set.h"
#include "core/steps/step_tables.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

// Any number of threads. The opening reads and checks the header and the numbers of steps. The rest
// of the file is mapped, and each block is checked on first use. Whatever happens to the file
// later, each call stays within the file, and returns or throws: Error truncated or io if the file
// can no longer be read, and corrupt if the file is damaged.
class StepFile {
 public:
  // Opens the step file at `path` for the records of `data`. Throws Error io (ENOENT if the file
  // does not exist), stale_index if the file may not be believed (sidecar.h) or belongs to other
  // data, and corrupt if the file is damaged.
  static std::shared_ptr<const StepFile> open(const std::string& path, const ShardSet& data,
                                              std::uint64_t stamp);

  const std::string& path() const noexcept { return file_->path(); }
  std::uint64_t bytes() const noexcept { return file_->bytes(); }
  const StepAxis& axis() const noexcept { return axis_; }
  std::uint64_t stamp() const noexcept { return header_.stamp; }
  bool left_out() const noexcept { return (header_.flags & kStepsLeftOut) != 0; }
  const std::vector<StepFeature>& features() const noexcept { return features_; }

  // The number of each record's first step, then the number of all steps.
  const std::vector<std::uint64_t>& first_steps() const noexcept { return first_steps_; }

  // Writes one base per feature: the begin of the feature's pieces in the record, or kNoPieces.
  // Returns the record's uncut entries: the number of the first entry, and the count.
  struct Entries {
    std::uint32_t first;
    std::uint32_t count;
  };
  Entries row(std::uint64_t record, std::uint32_t* bases) const;
  void rest(const Entries& entries, RestEntry* out) const;

  // The total size of a feature's pieces before a step, through all records, if sizes differ.
  // `step` may be the number of all steps.
  std::uint64_t bytes_before(const StepFeature& feature, std::uint64_t step) const;
  // The checksum of a run, by the run's place among all runs.
  std::uint32_t crc(const StepFeature& feature, std::uint64_t place) const;

  // Returns the steps of all records, to begin a file of more records.
  StepPart part() const;

 private:
  explicit StepFile(std::shared_ptr<const StoredFile> file) : file_(std::move(file)) {}
  void read_header(const ShardSet& data, std::uint64_t stamp);
  void read_description(const std::vector<std::uint8_t>& bytes);
  void read_first_steps();
  [[noreturn]] void refuse(const std::string& why) const;
  void check_table(std::uint64_t at, std::uint64_t count, std::uint64_t width) const;
  // Checks the blocks that contain these bytes of the body. Call inside run_guarded().
  bool is_intact(std::uint64_t begin, std::uint64_t bytes) const noexcept;
  template <class Leaf>
  void touch(const Leaf& leaf) const;

  const std::shared_ptr<const StoredFile> file_;
  std::vector<std::uint64_t> owned_;  // the body; empty if the file is mapped
  const std::uint8_t* body_ = nullptr;
  StepFileHeader header_ = {};
  StepAxis axis_;
  std::uint64_t rows_at_ = 0;
  std::uint64_t rest_at_ = 0;
  std::vector<StepFeature> features_;
  std::vector<std::uint64_t> first_steps_;
  std::vector<std::uint32_t> block_crcs_;
  mutable std::vector<std::atomic<bool>> checked_;  // blocks
};

}  // namespace tfrfast
