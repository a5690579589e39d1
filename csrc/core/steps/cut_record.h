// Cuts an Example of an episode into steps: finds where the values of each step lie.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/example/wire.h"
#include "core/steps/step_form.h"

namespace tfrfast {

// The features with values for each step. All other features belong to the whole episode.
struct StepAxis {
  static constexpr std::uint32_t kFindOut = 0;

  std::vector<std::string> prefixes;  // of the names of step features
  // The step features by name, each with its number of values per step.
  std::map<std::string, std::uint32_t, std::less<>> features;

  bool has(std::string_view name) const noexcept;

  std::string encode() const;
  static StepAxis decode(std::string_view encoded);  // throws Error invalid
  friend bool operator==(const StepAxis&, const StepAxis&) = default;
};

// A feature along the axis. Its pieces, one per step, are contiguous. Each piece holds a step's
// values exactly as in the list.
struct CutFeature {
  std::string_view name;
  StepForm form = StepForm::bytes;
  std::uint32_t values = 0;  // of one step; 0 if numbers differ
  WireBytes pieces;
  std::uint32_t width = 0;           // of each piece; 0 if sizes differ
  std::vector<std::uint32_t> sizes;  // of each piece, if sizes differ
};

struct CutRecord {
  std::uint32_t steps = 0;
  std::vector<CutFeature> features;  // features with values, in the order of their names
  std::vector<WireBytes> rest;       // contents of the other map entries, in order
  // Lists along the axis with the name of a feature of the context.
  std::vector<std::string_view> named_twice;
};

// Returns views into the record. Reads names, lists and repeated keys like TensorFlow's fast
// parser: the last entry of a key counts, and the entry's first list. Throws Error feature if the
// record is not an Example or its features do not share an axis. The message completes a sentence
// that begins with the record's place.
CutRecord cut_record(WireBytes record, const StepAxis& axis);

}  // namespace tfrfast
