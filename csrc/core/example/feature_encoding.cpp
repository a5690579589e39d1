// Encodes a feature schema as bytes.
#include "core/example/schema.h"

namespace tfrfast {
namespace {

template <class Coder, class Fields>
void code_fields(Coder& coder, Fields& fields) {
  coder.nested([&] {
    coder.list(fields, [&](auto& field) {
      coder.number(field.number);
      coder.choice(field.type, FieldType::sint64);
      coder.flag(field.repeated);
      coder.flag(field.checks_utf8);
      coder.flag(field.is_closed);
      coder.list(field.names, [&](auto& each) {
        coder.integer(each.number);
        coder.string(each.name);
      });
      code_fields(coder, field.oneof);
      code_fields(coder, field.entry);
    });
  });
}

template <class Coder, class Image>
void code_image(Coder& coder, Image& image) {
  coder.number(image.height);
  coder.number(image.width);
  coder.number(image.channels);
  coder.number(image.frames);
  coder.flag(image.draws_each);
  coder.choice(image.crop, CropKind::random);
  for (auto* bound : {&image.min_area, &image.max_area, &image.min_ratio, &image.max_ratio}) {
    coder.number(*bound);
  }
  coder.flag(image.flips);
  coder.choice(image.resize, ResizeKind::bilinear);
  coder.flag(image.is_float);
  coder.flag(image.channels_first);
  coder.flag(image.turns_upright);
  coder.flag(image.grey_if_damaged);
  coder.number(image.max_pixels);
}

template <class Coder, class Spec>
void code_spec(Coder& coder, Spec& spec) {
  coder.string(spec.name);
  coder.named(
      spec.layout, [](const Layout* layout) { return layout->name; },
      [](std::string_view name) { return &layout_named(name); });
  coder.named(spec.type, [](ValueType type) { return name_of(type); }, &value_type_named);
  coder.integers(spec.shape);
  coder.number(spec.raw_bytes);
  coder.number(spec.budget);
  coder.flag(spec.required);
  coder.flag(spec.inferred);
  coder.optional_if(spec.type == ValueType::image, spec.image,
                    [&](auto& image) { code_image(coder, image); });
  coder.optional_if(spec.type == ValueType::tensor, spec.tensor, [&](auto& form) {
    coder.number(form.type);
    coder.integers(form.shape);
  });
  coder.optional(spec.scaling, [&](auto& scaling) {
    coder.flag(scaling.keeps_padding);
    coder.list(scaling.lines, [&](auto& line) {
      for (auto* each : {&line.shift, &line.factor, &line.base, &line.low, &line.high}) {
        coder.real(*each);
      }
    });
  });
  coder.optional(spec.path, [&](auto& path) {
    coder.string(path.message);
    code_fields(coder, path.fields);
    coder.choice(path.content, PathContent::presence);
  });
  coder.optional(spec.default_value, [&](auto& value) {
    coder.table(value.numbers);
    coder.list(value.strings, [&](auto& string) { coder.string(string); });
  });
}

}  // namespace

std::string FeatureSchema::encode() const {
  Encoder encoder(kEncoding);
  encoder.list(features_, [&](const CompiledFeature& each) { code_spec(encoder, each.spec); });
  return encoder.finish();
}

FeatureSchema FeatureSchema::decode(std::string_view encoded) {
  Decoder decoder(kEncoding, encoded);
  std::vector<FeatureSpec> specs;
  decoder.list(specs, [&](FeatureSpec& each) { code_spec(decoder, each); });
  decoder.finish();
  return FeatureSchema(std::move(specs));
}

}  // namespace tfrfast
