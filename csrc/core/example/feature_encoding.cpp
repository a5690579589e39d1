// Encodes a feature schema as bytes.
#include "core/example/schema.h"

namespace tfrfast {
namespace {

void encode_spec(Encoder& encoder, const FeatureSpec& spec) {
  encoder.string(spec.name);
  encoder.string(spec.layout->name);
  encoder.string(name_of(spec.type));
  encoder.integers(spec.shape);
  encoder.number(spec.raw_bytes);
  encoder.number(spec.budget);
  encoder.flag(spec.required);
  encoder.flag(spec.inferred);
  if (spec.type == ValueType::image) encode_image(encoder, *spec.image);
  encoder.flag(spec.scaling.has_value());
  if (spec.scaling) encode_scaling(encoder, *spec.scaling);
  encoder.flag(spec.path.has_value());
  if (spec.path) encode_path(encoder, *spec.path);
  encoder.flag(spec.default_value.has_value());
  if (!spec.default_value) return;
  const std::vector<std::uint8_t>& numbers = spec.default_value->numbers;
  encoder.string({reinterpret_cast<const char*>(numbers.data()), numbers.size()});
  encoder.number(spec.default_value->strings.size());
  for (const std::string& string : spec.default_value->strings) encoder.string(string);
}

FeatureSpec decode_spec(Decoder& decoder) {
  FeatureSpec spec;
  spec.name = decoder.string();
  spec.layout = &layout_named(decoder.string());
  spec.type = value_type_named(decoder.string());
  spec.shape = decoder.integers();
  spec.raw_bytes = static_cast<std::size_t>(decoder.number());
  spec.budget = static_cast<std::size_t>(decoder.number());
  spec.required = decoder.flag();
  spec.inferred = decoder.flag();
  if (spec.type == ValueType::image) spec.image = decode_image(decoder);
  if (decoder.flag()) spec.scaling = decode_scaling(decoder);
  if (decoder.flag()) spec.path = decode_path(decoder);
  if (!decoder.flag()) return spec;
  DefaultValue& value = spec.default_value.emplace();
  const std::string_view numbers = decoder.string();
  value.numbers.assign(numbers.begin(), numbers.end());
  const std::size_t strings = decoder.count();
  for (std::size_t i = 0; i < strings; ++i) value.strings.emplace_back(decoder.string());
  return spec;
}

}  // namespace

std::string FeatureSchema::encode() const {
  Encoder encoder(kEncoding);
  encoder.number(features_.size());
  for (const CompiledFeature& feature : features_) encode_spec(encoder, feature.spec);
  return encoder.finish();
}

FeatureSchema FeatureSchema::decode(std::string_view encoded) {
  Decoder decoder(kEncoding, encoded);
  const std::size_t count = decoder.count();
  std::vector<FeatureSpec> specs;
  for (std::size_t i = 0; i < count; ++i) specs.push_back(decode_spec(decoder));
  decoder.finish();
  return FeatureSchema(std::move(specs));
}

}  // namespace tfrfast
