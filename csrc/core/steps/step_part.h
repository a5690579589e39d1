// The places of the steps of some consecutive records. Threads or processes make the parts of a
// data set at the same time, and the parts become one step file.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/example/wire.h"
#include "core/steps/cut_record.h"
#include "core/steps/step_form.h"

namespace tfrfast {

// The decisions made before the first part.
struct StepLayout {
  StepAxis axis;
  // For features of short byte strings, and for lists: the number of pieces that share a checksum.
  std::map<std::string, std::uint32_t, std::less<>> runs;
  // Lists that get another name, so that the context may have a feature of their name.
  std::set<std::string, std::less<>> renamed = {};

  // Chooses the runs for records like this sample. Throws like cut_record().
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
  std::uint32_t values = 0;     // of one step; 0 if numbers differ
  std::uint32_t run_steps = 1;  // pieces that share a checksum, a power of two
  std::uint32_t width = 0;      // of each piece; 0 if sizes differ
  bool has_sizes = false;       // sizes differ, and `sizes` lists them

  std::vector<std::uint32_t> bases;  // by record: begin of its pieces, or kNoPieces
  std::vector<std::uint32_t> sizes;  // by piece, in the records with pieces
  std::vector<std::uint32_t> crcs;   // by run, in the records with pieces
};

struct StepPart {
  std::vector<std::uint32_t> steps;        // by record
  std::vector<std::uint32_t> rest_counts;  // by record
  std::vector<RestEntry> rest;             // of all records
  std::vector<FeaturePart> features;
  bool left_out = false;  // some records were damaged, and have no steps

  std::string encode() const;
  static StepPart decode(std::string_view encoded);  // throws Error invalid
};

// Throws Error feature, which begins with `where`: a feature's number of values per step differs
// from earlier records.
[[noreturn]] void refuse_values(const std::string& where, std::string_view name,
                                std::uint32_t values, std::uint32_t before);

class StepPartMaker {
 public:
  explicit StepPartMaker(StepLayout layout) : layout_(std::move(layout)) {}

  // Adds a verified record. `where()` names the record, for the Error feature of a record that
  // cannot be cut.
  void add(WireBytes record, const std::function<std::string()>& where);
  // Adds a damaged record, without steps.
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
