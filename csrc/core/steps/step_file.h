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

// Any number of threads. The header and the numbers of steps are read and checked when it is
// opened. All else is mapped, and each block is checked when it is first needed. Whatever becomes
// of the file later, each call stays within it and returns or throws: Error truncated or io if the
// file can no longer be read, and corrupt if it is not intact.
class StepFile {
 public:
  // Opens the step file at `path`, which is of the records of `data`. Throws Error io (ENOENT if
  // there is none), stale_index if it may not be believed (own_file.h) or is of other data, and
  // corrupt if it is not intact.
  static std::shared_ptr<const StepFile> open(const std::string& path, const ShardSet& data,
                                              std::uint64_t stamp);

  const std::string& path() const noexcept { return file_->path(); }
  std::uint64_t bytes() const noexcept { return file_->bytes(); }
  const StepAxis& axis() const noexcept { return axis_; }
  std::uint64_t stamp() const noexcept { return header_.stamp; }
  bool left_out() const noexcept { return (header_.flags & kStepsLeftOut) != 0; }
  const std::vector<StepFeature>& features() const noexcept { return features_; }

  // The number of the first step of each record and, at the end, of all steps.
  const std::vector<std::uint64_t>& first_steps() const noexcept { return first_steps_; }

  // Where the pieces of each feature begin in a record, or kNoPieces: one value for each feature.
  // Returns the record's entries that are not cut: the number of the first one, and their count.
  struct Entries {
    std::uint32_t first;
    std::uint32_t count;
  };
  Entries row(std::uint64_t record, std::uint32_t* bases) const;
  void rest(const Entries& entries, RestEntry* out) const;

  // How many bytes all pieces of a feature before that step have: those of all records, if they
  // have different sizes. `step` may be the number of all steps.
  std::uint64_t bytes_before(const StepFeature& feature, std::uint64_t step) const;
  // The checksum of a run, by its place among all.
  std::uint32_t crc(const StepFeature& feature, std::uint64_t place) const;

 private:
  explicit StepFile(std::shared_ptr<const StoredFile> file) : file_(std::move(file)) {}
  void read_header(const ShardSet& data, std::uint64_t stamp);
  void read_description(const std::vector<std::uint8_t>& bytes);
  void read_first_steps();
  [[noreturn]] void refuse(const std::string& why) const;
  void check_table(std::uint64_t at, std::uint64_t count, std::uint64_t width) const;
  // Checks the blocks that these bytes of the body lie in. Call it inside run_guarded().
  bool is_intact(std::uint64_t begin, std::uint64_t bytes) const noexcept;
  template <class Leaf>
  void touch(const Leaf& leaf) const;

  const std::shared_ptr<const StoredFile> file_;
  std::vector<std::uint64_t> owned_;  // the body, if the file is not mapped
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
