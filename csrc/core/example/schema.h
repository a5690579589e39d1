// The features to read from each record. Their descriptions are checked once and compiled into a
// table for the decoder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/encoding.h"
#include "core/example/layout.h"
#include "core/example/list.h"
#include "core/example/message_shape.h"
#include "core/example/scaling.h"
#include "core/example/serialized_tensor.h"
#include "core/example/value_type.h"
#include "core/image/image_spec.h"

namespace tfrfast {

// A row's values, or a single value, in `numbers` or `strings` depending on the type.
struct DefaultValue {
  std::vector<std::uint8_t> numbers;  // encoded as in the column
  std::vector<std::string> strings;
};

struct FeatureSpec {
  std::string name;
  const Layout* layout = &kFixedLayout;
  ValueType type = ValueType::int64;
  std::vector<std::int64_t> shape;  // fixed: of a row; padded: of one step; otherwise empty
  std::optional<DefaultValue> default_value;  // fixed: a whole row; padded: one value
  bool required = false;             // every record of a feature list must have the feature
  bool inferred = false;             // found in some records: others may not fit
  std::size_t raw_bytes = 0;         // raw: bytes of a row
  std::size_t budget = 0;            // packed, segments, positions: the number of a row's budget
  std::optional<ImageSpec> image;    // set for images alone
  std::optional<TensorForm> tensor;  // set for serialized tensors alone
  std::optional<Scaling> scaling;    // of floats that are normalised
  std::optional<MessagePath> path;   // set for fields of messages that are not Examples
};

// A feature as the decoder needs it.
struct CompiledFeature {
  FeatureSpec spec;
  ListKind kind = ListKind::none;
  // fixed: values in a row; padded: in one step; images: in a row, one for each step of a window
  std::size_t row_values = 1;
  std::size_t value_bytes = 0;  // numbers only; a row of raw, one fixed image or a tensor's
                                // row is one value
  // Every record has exactly row_values values, or the default.
  bool is_required = true;
  // The bytes with which a map entry for this feature begins, after the entry's own tag and length:
  // the key's tag, length and bytes, then the value's tag. Zero-padded to whole words.
  std::vector<std::uint64_t> opening;
  std::size_t opening_bytes = 0;

  // Whether no entry of a record is this feature, whatever its name.
  bool is_fact() const noexcept {
    return spec.layout == &kSegmentsLayout || spec.layout == &kPositionsLayout ||
           spec.layout == &kStartsLayout;
  }
  // Whether the steps of a window that are padding show only in the feature "<name>/valid".
  bool may_hold_padding() const noexcept {
    return (spec.image && spec.image->frames > 0) || (spec.scaling && spec.scaling->keeps_padding);
  }
  bool is_packed() const noexcept { return spec.layout == &kPackedLayout; }
};

// Immutable. Threads may share a schema.
class FeatureSchema {
 public:
  static constexpr std::uint32_t kUnknown = 0xffffffff;
  static constexpr EncodedKind kEncoding{"feature schema", "tfFQ", 4};

  // Throws `invalid` for a contradictory description: a repeated name, a negative dimension, a
  // default whose size differs from the shape's.
  explicit FeatureSchema(std::vector<FeatureSpec> specs);

  std::string encode() const;
  static FeatureSchema decode(std::string_view encoded);  // throws `invalid`

  std::size_t size() const noexcept { return features_.size(); }
  // Whether features were inferred from records that were Examples, so that all records must be.
  bool is_of_examples_alone() const noexcept { return is_of_examples_alone_; }
  // Whether an image is cropped or mirrored at random.
  bool needs_draws() const noexcept { return needs_draws_; }
  // What is read of each record's message. Null if records are Examples.
  const MessageShape* message() const noexcept { return message_ ? &*message_ : nullptr; }
  const CompiledFeature& operator[](std::size_t slot) const noexcept { return features_[slot]; }

  // The slot of the feature with this name, or kUnknown. Facts have no name that a record can give.
  std::uint32_t find(WireBytes name) const noexcept;

 private:
  std::vector<CompiledFeature> features_;
  bool is_of_examples_alone_ = false;
  bool needs_draws_ = false;
  std::optional<MessageShape> message_;
  std::vector<std::uint32_t> table_;  // open addressing, at most half full
};

}  // namespace tfrfast
