// Where the steps of some consecutive records lie. Parts of a data set are made at the same time,
// by threads or processes, and become one step file.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/example/wire.h"
#include "core/steps/cut_record.h"
#include "core/steps/step_form.h"

namespace tfrfast {

// What was decided before any part was made.
struct StepLayout {
  StepAxis axis;
  // Of features of byte strings that are short: how many pieces share a checksum.
  std::map<std::string, std::uint32_t, std::less<>> runs;

  // With the runs that suit a record like this one. Throws what cut_record() throws.
  static StepLayout of(const StepAxis& axis, WireBytes sample);

  std::string encode() const;
  static StepLayout decode(std::string_view encoded);  // throws Error invalid
};

// An entry of a record's map that is not cut.
struct RestEntry {
  std::uint32_t offset = 0;  // in the record
  std::uint32_t bytes = 0;
  std::uint32_t crc = 0;  // CRC-32C
};
static_assert(sizeof(RestEntry) == 12);

inline constexpr std::uint32_t kNoPieces = 0;  // no piece begins at byte 0 of a record

// A feature along the axis, in one form, over some records.
struct FeaturePart {
  std::string name;
  StepForm form = StepForm::bytes;
  std::uint32_t values = 0;     // of one step; 0 if steps have different numbers of them
  std::uint32_t run_steps = 1;  // pieces that share a checksum, a power of two
  std::uint32_t width = 0;      // of each piece; 0 if they have different ones
  bool has_sizes = false;       // pieces have different ones, which `sizes` lists

  std::vector<std::uint32_t> bases;  // where its pieces begin in each record, or kNoPieces
  std::vector<std::uint32_t> sizes;  // of each piece in the records that have any
  std::vector<std::uint32_t> crcs;   // of each run in the records that have any
};

struct StepPart {
  std::vector<std::uint32_t> steps;        // of each record
  std::vector<std::uint32_t> rest_counts;  // of each record
  std::vector<RestEntry> rest;             // of all records
  std::vector<FeaturePart> features;
  bool left_out = false;  // damaged records, which have no steps

  std::string encode() const;
  static StepPart decode(std::string_view encoded);  // throws Error invalid
};

// Throws Error feature, with `where` before it, if a feature has another number of values in a step
// than it had before.
[[noreturn]] void refuse_values(const std::string& where, std::string_view name,
                                std::uint32_t values, std::uint32_t before);

class StepPartMaker {
 public:
  explicit StepPartMaker(StepLayout layout) : layout_(std::move(layout)) {}

  // A verified record. `where()` names it, for the Error feature that is thrown if it cannot be
  // cut.
  void add(WireBytes record, const std::function<std::string()>& where);
  // A damaged record that is left out.
  void add_damaged();

  StepPart finish() { return std::move(part_); }

 private:
  void add_feature(WireBytes record, const CutFeature& cut, std::uint32_t steps,
                   const std::function<std::string()>& where);
  FeaturePart& part_of(const CutFeature& cut);

  const StepLayout layout_;
  StepPart part_;
};

}  // namespace tfrfast
