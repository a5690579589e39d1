#include "core/example/schema.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "core/base/bytes.h"
#include "core/base/error.h"
#include "core/example/entry_head.h"

namespace tfrfast {
namespace {

std::uint64_t hash_of(WireBytes name) noexcept {
  constexpr std::uint64_t kMultiplier = 0x9e3779b97f4a7c15u;
  std::uint64_t hash = name.size() * kMultiplier;
  const std::uint8_t* bytes = name.data();
  std::size_t left = name.size();
  for (; left >= 8; left -= 8, bytes += 8) {
    hash = (hash ^ load_little_endian<std::uint64_t>(bytes)) * kMultiplier;
    hash ^= hash >> 32;
  }
  std::uint64_t rest = 0;
  for (; left != 0; --left) rest = rest << 8 | bytes[left - 1];
  hash = (hash ^ rest) * kMultiplier;
  return hash ^ hash >> 29;
}

WireBytes bytes_of(const std::string& text) noexcept {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

[[noreturn]] void refuse(const FeatureSpec& spec, const std::string& why) {
  throw Error(ErrorKind::invalid, "Feature '" + spec.name + "': " + why);
}

std::size_t product_of(const FeatureSpec& spec) {
  std::uint64_t product = 1;
  for (const std::int64_t size : spec.shape) {
    if (size < 0) refuse(spec, "the shape has a negative dimension; every one must be known.");
    if (__builtin_mul_overflow(product, static_cast<std::uint64_t>(size), &product) ||
        product > (std::uint64_t{1} << 48)) {
      refuse(spec, "the shape has more values than memory can hold.");
    }
  }
  return product;
}

void check_default(const FeatureSpec& spec, const CompiledFeature& feature) {
  if (!spec.default_value) return;
  if (!spec.layout->has_shape && !spec.path) {
    refuse(spec, "only features with a shape can have a default.");
  }
  const std::size_t values = spec.layout->rows_are_alike ? feature.row_values : 1;
  const bool strings = spec.type == ValueType::bytes;
  const std::size_t given =
      strings ? spec.default_value->strings.size() : spec.default_value->numbers.size();
  const std::size_t wanted = strings ? values : values * feature.value_bytes;
  if (given != wanted) refuse(spec, "the default does not have the feature's shape and type.");
}

void write_opening(CompiledFeature& feature) {
  std::string bytes = key_field(feature.spec.name);
  bytes += static_cast<char>(bytes_tag(2));
  feature.opening_bytes = bytes.size();
  feature.opening.assign((bytes.size() + 7) / 8, 0);
  std::memcpy(feature.opening.data(), bytes.data(), bytes.size());
}

void check_image(const FeatureSpec& spec, std::size_t row_values) {
  if (!spec.image) refuse(spec, "an image needs the size and form of its pixels.");
  check(*spec.image);
  const Layout& layout = spec.image->keeps_sizes() ? kRaggedLayout : kFixedLayout;
  if (spec.layout != &layout) {
    refuse(spec, std::string("such images have the layout ") + layout.name + ".");
  }
  if (layout.rows_are_alike && row_values * spec.image->value_bytes() !=
                                   spec.image->pictures() * spec.image->result_bytes()) {
    refuse(spec, "the shape is not that of its images.");
  }
  if (spec.default_value) refuse(spec, "an image has no default.");
}

void check_scaling(const FeatureSpec& spec, const CompiledFeature& feature) {
  if (!spec.scaling) return;
  check(*spec.scaling);
  if (spec.type != ValueType::float32) refuse(spec, "only float32 is normalised.");
  if (spec.layout->has_shape && feature.row_values % spec.scaling->lines.size() != 0) {
    refuse(spec, "the shape does not end in the shape of the numbers that normalise it.");
  }
}

// Returns the bytes of a row, or of a step if rows have any number of steps.
std::size_t check_tensor(const FeatureSpec& spec) {
  if (!spec.tensor) refuse(spec, "a serialized tensor needs its type and shape.");
  const TensorForm& form = *spec.tensor;
  const bool has_any_length = form.has_any_length();
  if (spec.layout != (has_any_length ? &kRaggedLayout : &kFixedLayout)) {
    refuse(spec, "its layout is not that of its tensor.");
  }
  if (spec.default_value) refuse(spec, "a serialized tensor has no default.");
  std::size_t bytes = tensor_value_bytes(form.type);
  if (bytes == 0) refuse(spec, "tensors of such a type are not read.");
  FeatureSpec row = spec;
  row.shape.assign(form.shape.begin() + has_any_length, form.shape.end());
  bytes *= product_of(row);
  if (has_any_length && bytes == 0) refuse(spec, "steps without values cannot be counted.");
  if (!has_any_length && spec.shape != form.shape) refuse(spec, "the shape is not its tensor's.");
  return bytes;
}

CompiledFeature compile(FeatureSpec spec) {
  CompiledFeature feature;
  feature.kind = list_kind_of(spec.type);
  feature.value_bytes = spec.type == ValueType::raw ? spec.raw_bytes : item_bytes_of(spec.type);
  feature.row_values = product_of(spec);
  if (spec.type == ValueType::raw) {
    if (!spec.layout->rows_are_alike) refuse(spec, "raw bytes need a fixed shape.");
    feature.row_values = 1;
  }
  if (spec.type == ValueType::tensor) {
    feature.value_bytes = check_tensor(spec);
    feature.row_values = 1;
  }
  if (spec.type == ValueType::image) {
    check_image(spec, feature.row_values);
    feature.value_bytes =
        spec.image->keeps_sizes() ? spec.image->value_bytes() : spec.image->result_bytes();
    feature.row_values = spec.image->pictures();
  }
  if (spec.layout == &kPackedLayout && feature.kind == ListKind::bytes) {
    refuse(spec, "only numbers are packed.");
  }
  if (feature.kind == ListKind::none && !spec.path) {
    refuse(spec, std::string("an Example holds no ") + name_of(spec.type) + ".");
  }
  if (!spec.layout->has_shape && !spec.shape.empty()) {
    refuse(spec, "a feature of any length has no shape.");
  }
  if (!spec.layout->rows_are_alike && feature.row_values == 0) {
    refuse(spec, "a sequence of shapes without values has no length.");
  }
  check_default(spec, feature);
  check_scaling(spec, feature);
  if (spec.scaling && !spec.layout->has_shape) feature.row_values = spec.scaling->lines.size();
  feature.is_required = spec.layout->rows_are_alike || spec.type == ValueType::image ||
                        spec.type == ValueType::tensor;
  feature.spec = std::move(spec);
  write_opening(feature);
  return feature;
}

}  // namespace

FeatureSchema::FeatureSchema(std::vector<FeatureSpec> specs) {
  features_.reserve(specs.size());
  table_.assign(std::bit_ceil(2 * specs.size() + 2), kUnknown);
  for (FeatureSpec& spec : specs) {
    if (find(bytes_of(spec.name)) != kUnknown) refuse(spec, "its name appears twice.");
    is_of_examples_alone_ = is_of_examples_alone_ || spec.inferred;
    features_.push_back(compile(std::move(spec)));
    if (features_.back().is_fact()) continue;
    std::size_t place = hash_of(bytes_of(features_.back().spec.name)) & (table_.size() - 1);
    while (table_[place] != kUnknown) place = (place + 1) & (table_.size() - 1);
    table_[place] = static_cast<std::uint32_t>(features_.size() - 1);
    const std::optional<ImageSpec>& image = features_.back().spec.image;
    needs_draws_ = needs_draws_ || (image && image->is_random());
  }
  const auto is_of_message = [](const CompiledFeature& feature) {
    return feature.spec.path.has_value();
  };
  if (!std::any_of(features_.begin(), features_.end(), is_of_message)) return;
  std::vector<const FeatureSpec*> paths;
  for (const CompiledFeature& feature : features_) paths.push_back(&feature.spec);
  message_.emplace(paths);
}

std::uint32_t FeatureSchema::find(WireBytes name) const noexcept {
  std::size_t place = hash_of(name) & (table_.size() - 1);
  for (;; place = (place + 1) & (table_.size() - 1)) {
    const std::uint32_t slot = table_[place];
    if (slot == kUnknown) return kUnknown;
    const std::string& candidate = features_[slot].spec.name;
    if (std::equal(candidate.begin(), candidate.end(), name.begin(), name.end(),
                   [](char a, std::uint8_t b) { return static_cast<std::uint8_t>(a) == b; })) {
      return slot;
    }
  }
}

}  // namespace tfrfast
