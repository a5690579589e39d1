// Cuts an Example that holds an episode into its steps: where the values of each step lie.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/example/wire.h"
#include "core/steps/step_form.h"

namespace tfrfast {

// Which features have values for each step. Those of the others belong to the whole episode.
struct StepAxis {
  static constexpr std::uint32_t kFindOut = 0;

  std::vector<std::string> prefixes;  // of the names of such features
  // Such features by name, and how many values of theirs are one step's.
  std::map<std::string, std::uint32_t, std::less<>> features;

  bool has(std::string_view name) const noexcept;

  std::string encode() const;
  static StepAxis decode(std::string_view encoded);  // throws Error invalid
  friend bool operator==(const StepAxis&, const StepAxis&) = default;
};

// A feature whose values are those of an episode's steps. Its pieces, one for each step, follow one
// another without gaps, and each holds that step's values as they lie in the list.
struct CutFeature {
  std::string_view name;
  StepForm form = StepForm::bytes;
  std::uint32_t values = 0;  // of one step; 0 if steps have different numbers of them
  WireBytes pieces;
  std::uint32_t width = 0;           // of each piece; 0 if they have different ones
  std::vector<std::uint32_t> sizes;  // of each piece, if they have different ones
};

struct CutRecord {
  std::uint32_t steps = 0;
  std::vector<CutFeature> features;  // that have any values, in the order of their names
  std::vector<WireBytes> rest;       // what the map's other entries hold, in their order
};

// Views point into the record. Names, lists and repeated keys are read as TensorFlow's fast parser
// reads them: the last entry of a key counts, and the first list in it. Throws Error feature, whose
// message ends a sentence that begins with the record's place, if the record is not an Example or
// its features do not share an axis.
CutRecord cut_record(WireBytes record, const StepAxis& axis);

}  // namespace tfrfast
