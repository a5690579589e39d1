// What is asked of each record: a feature description, checked once and compiled into what the
// decoder looks things up in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/example/list.h"

namespace tfrfast {

enum class ValueType : std::uint8_t {
  bytes,
  float32,
  int64,
  int32,
  int16,
  int8,
  uint32,
  uint16,
  uint8,
  boolean,
  raw,  // one byte string of exactly `raw_bytes` bytes, taken as it is
};

ListKind list_kind_of(ValueType type) noexcept;
const char* name_of(ValueType type) noexcept;
std::size_t item_bytes_of(
    ValueType type) noexcept;  // 0 for bytes and raw, which have no fixed size

enum class Layout : std::uint8_t {
  fixed,   // rows of one shape
  padded,  // rows of any number of one shape, padded to the batch's longest
  ragged,  // rows of any length: values and row splits
  sparse,  // rows of any length: values and their (row, column)
};

// A row's values, or one value, in `numbers` or `strings` as the type says.
struct DefaultValue {
  std::vector<std::uint8_t> numbers;  // as they lie in the column
  std::vector<std::string> strings;
};

struct FeatureSpec {
  std::string name;
  Layout layout = Layout::fixed;
  ValueType type = ValueType::int64;
  std::vector<std::int64_t> shape;            // fixed: of a row; padded: of one step; else empty
  std::optional<DefaultValue> default_value;  // fixed: a whole row; padded: one value
  bool required = false;                      // of a list of features: it may not be missing
  std::size_t raw_bytes = 0;                  // of a row, for ValueType::raw
};

// A feature as the decoder wants it.
struct CompiledFeature {
  FeatureSpec spec;
  ListKind kind = ListKind::none;
  std::size_t row_values = 1;   // fixed: values in a row; padded: in one step
  std::size_t value_bytes = 0;  // numbers only; a raw row counts as one value
  // What a map entry for this feature begins with, after its own tag and length: the key's tag,
  // length and bytes, then the value's tag. Zero-padded to whole words.
  std::vector<std::uint64_t> opening;
  std::size_t opening_bytes = 0;
};

// Immutable; may be shared between threads.
class FeaturePlan {
 public:
  static constexpr std::uint32_t kUnknown = 0xffffffff;

  // Throws `invalid` for a description that has no meaning: a name asked for twice, a negative
  // dimension, a default of another size than the shape.
  explicit FeaturePlan(std::vector<FeatureSpec> specs);

  std::size_t size() const noexcept { return features_.size(); }
  const CompiledFeature& operator[](std::size_t slot) const noexcept { return features_[slot]; }

  // The slot of the feature with this name, or kUnknown.
  std::uint32_t find(WireBytes name) const noexcept;

 private:
  std::vector<CompiledFeature> features_;
  std::vector<std::uint32_t> table_;  // open addressing, at most half full
};

}  // namespace tfrfast
