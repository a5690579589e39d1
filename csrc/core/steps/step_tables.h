// A step file: the place of each step in its record. docs/step-file.md describes every byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/index/packed_offsets.h"
#include "core/steps/step_part.h"

namespace tfrfast {

struct StepFileHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t flags;
  std::uint64_t record_count;
  std::uint64_t step_count;
  std::uint64_t rest_count;
  std::uint64_t fingerprint;
  std::uint64_t stamp;
  std::uint64_t description_bytes;
  std::uint64_t body_at;
  std::uint64_t body_bytes;
  std::uint64_t zero;
  std::uint32_t also_zero;
  std::uint32_t header_crc;  // of all bytes up to the body, except this field
};
static_assert(sizeof(StepFileHeader) == 96);

inline constexpr std::uint32_t kStepFileVersion = 1;
inline constexpr std::uint32_t kStepsLeftOut = 1;  // flag: damaged records have no steps
// The size of a block. Each block of the body has a checksum.
inline constexpr std::uint64_t kStepBlockBytes = 16 << 10;
inline constexpr std::uint64_t kStepAlignment = 64;

// A feature along the axis, and the places of its tables in the body.
struct StepFeature {
  std::string name;
  StepForm form = StepForm::bytes;
  std::uint32_t values = 0;     // of one step; 0 if steps differ
  std::uint32_t run_steps = 1;  // pieces that share a checksum, a power of two
  std::uint32_t width = 0;      // bytes of each piece; 0 if pieces differ and sizes are packed
  std::uint64_t crcs_at = 0;
  std::uint64_t crc_count = 0;
  std::uint64_t blocks_at = 0;
  std::uint64_t residuals_at = 0;
  std::uint64_t residuals_bytes = 0;
};

// The place of a record's first run among a feature's checksums. `first_step` is the number of the
// record's first step. Records with fewer runs leave places unused.
constexpr std::uint64_t first_run_of(std::uint64_t record, std::uint64_t first_step,
                                     std::uint32_t run_steps) noexcept {
  return run_steps == 1 ? first_step : first_step / run_steps + record;
}

// The bytes of a step file, without a second copy of its tables. Immutable once it is finished.
class StepFileBytes {
 public:
  struct Table {
    std::uint64_t at = 0;  // in the body
    std::span<const std::uint8_t> bytes;
    std::shared_ptr<const void> owner;
  };
  StepFileBytes(std::uint64_t body_bytes, std::vector<Table> tables)
      : body_bytes_(body_bytes), tables_(std::move(tables)) {}
  // Puts `head` before the body. Without this call, there is only the body.
  void set_head(std::string head) { head_ = std::move(head); }

  std::uint64_t size() const noexcept { return head_.size() + body_bytes_; }
  // Reads out.size() bytes from `at` on, which must exist.
  void read(std::uint64_t at, std::span<std::uint8_t> out) const noexcept;

 private:
  std::string head_;
  std::uint64_t body_bytes_;
  std::vector<Table> tables_;
};

// Joins parts in the order of their records.
class StepTables {
 public:
  explicit StepTables(StepAxis axis) : axis_(std::move(axis)) {}

  // Throws Error feature if the part's features have other numbers of values per step.
  void append(const StepPart& part);

  std::uint64_t record_count() const noexcept { return first_steps_.size() - 1; }
  std::uint64_t step_count() const noexcept { return first_steps_.back(); }

  // Returns the bytes of the file. Call once. Throws Error invalid if no record has a step.
  StepFileBytes finish(std::uint64_t fingerprint, std::uint64_t stamp) &&;

 private:
  struct FeatureTables {
    FeaturePart made;  // tables of all records; `sizes` is not used
    OffsetPacker ends;
    std::uint64_t end = 0;  // the sum of all sizes
  };
  FeatureTables& feature_of(const FeaturePart& part);
  void append_feature(const StepPart& part, const FeaturePart& from);
  // Lists the sizes of all steps of the first `records` records, which had one width so far.
  void list_sizes(FeatureTables& feature, std::size_t records);

  const StepAxis axis_;
  std::vector<std::uint64_t> first_steps_{0};
  std::vector<std::uint32_t> rest_counts_;
  std::vector<RestEntry> rest_;
  std::vector<FeatureTables> features_;
  bool left_out_ = false;
};

}  // namespace tfrfast
