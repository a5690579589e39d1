#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/base/encoding.h"
#include "core/base/error.h"
#include "core/example/schema.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

FeatureSpec spec(const char* name, const Layout* layout, ValueType type,
                 std::vector<std::int64_t> shape = {}) {
  FeatureSpec made;
  made.name = name;
  made.layout = layout;
  made.type = type;
  made.shape = std::move(shape);
  return made;
}

std::vector<FeatureSpec> some_of_everything() {
  std::vector<FeatureSpec> specs = {
      spec("fixed", &kFixedLayout, ValueType::float32, {2, 3}),
      spec("default", &kFixedLayout, ValueType::uint16, {2}),
      spec("strings", &kFixedLayout, ValueType::bytes, {2}),
      spec("raw", &kFixedLayout, ValueType::raw, {5}),
      spec("padded", &kPaddedLayout, ValueType::boolean, {4}),
      spec("ragged", &kRaggedLayout, ValueType::int8),
      spec("sparse", &kSparseLayout, ValueType::bytes),
      spec("packed", &kPackedLayout, ValueType::int32),
      spec("tensor", &kRaggedLayout, ValueType::tensor),
  };
  specs[0].scaling = Scaling{{{1, 2, -1, -1, 1}, {}, {0.5, 0, 0, 0, 0}}, true};
  specs[1].default_value = {{1, 0, 2, 0}, {}};
  specs[2].default_value = {{}, {"", std::string("a\0b", 3)}};
  specs[3].raw_bytes = 20;
  specs[5].required = true;
  specs[6].inferred = true;
  specs[7].budget = 1;
  specs[8].tensor = TensorForm{19, {-1, 7}};
  return specs;
}

// A feature schema of one feature, as another version of tfrfast might write it.
std::string encoded(const char* layout, const char* type, std::int64_t size, bool trailing) {
  Encoder encoder(FeatureSchema::kEncoding);
  encoder.number(1);
  encoder.string("a");
  encoder.string(layout);
  encoder.string(type);
  encoder.integers(std::vector<std::int64_t>{size});
  encoder.number(0);
  encoder.number(0);
  for (int flag = 0; flag < 5; ++flag) encoder.flag(false);
  if (trailing) encoder.number(0);
  return encoder.finish();
}

std::string refusal_of(const std::string& bytes) {
  return refusal([&] { FeatureSchema::decode(bytes); });
}

}  // namespace

TEST_CASE("a feature schema comes back from its encoding as it was") {
  const std::vector<FeatureSpec> specs = some_of_everything();
  const FeatureSchema schema(specs);
  const FeatureSchema copy = FeatureSchema::decode(schema.encode());
  CHECK(copy.encode() == schema.encode());
  REQUIRE(copy.size() == specs.size());
  for (std::size_t slot = 0; slot < specs.size(); ++slot) {
    const FeatureSpec& back = copy[slot].spec;
    CAPTURE(back.name);
    CHECK(back.name == specs[slot].name);
    CHECK(back.layout == specs[slot].layout);
    CHECK(back.type == specs[slot].type);
    CHECK(back.shape == specs[slot].shape);
    CHECK(back.raw_bytes == specs[slot].raw_bytes);
    CHECK(back.budget == specs[slot].budget);
    CHECK(back.required == specs[slot].required);
    CHECK(back.inferred == specs[slot].inferred);
    REQUIRE(back.tensor.has_value() == specs[slot].tensor.has_value());
    if (back.tensor) CHECK(back.tensor->shape == specs[slot].tensor->shape);
    REQUIRE(back.scaling.has_value() == specs[slot].scaling.has_value());
    if (back.scaling) {
      CHECK(back.scaling->keeps_padding);
      REQUIRE(back.scaling->lines.size() == 3);
      CHECK(back.scaling->lines[2].shift == 0.5);
    }
    REQUIRE(back.default_value.has_value() == specs[slot].default_value.has_value());
    if (!back.default_value) continue;
    CHECK(back.default_value->numbers == specs[slot].default_value->numbers);
    CHECK(back.default_value->strings == specs[slot].default_value->strings);
  }
}

TEST_CASE("a feature schema of something unknown is refused") {
  FeatureSchema::decode(encoded("fixed", "int64", 3, false));
  CHECK(
      refusal_of(encoded("curly", "int64", 3, false)) ==
      "layout is \"curly\", but must be \"fixed\", \"padded\", \"ragged\", \"sparse\", \"packed\", "
      "\"segments\", \"positions\" or \"starts\".");
  CHECK(refusal_of(encoded("fixed", "int65", 3, false)).find("type is \"int65\", but must be") ==
        0);
  CHECK(holds(refusal_of(encoded("fixed", "int64", -3, false)), "negative dimension"));
  CHECK(holds(refusal_of(encoded("ragged", "int64", 3, false)), "has no shape"));
  CHECK(holds(refusal_of(encoded("fixed", "int64", 3, true)), "8 bytes follow its end"));
  CHECK(refusal_of("tfrffea1 of a graph of an earlier version")
            .find("This is not a feature schema") == 0);
}

TEST_CASE("a feature schema of messages comes back, and paths that contradict each other do not") {
  const auto path_spec = [](const char* name, std::vector<MessageField> fields) {
    FeatureSpec made = spec(name, &kFixedLayout, ValueType::int32);
    made.path = MessagePath{"t.M", std::move(fields), PathContent::values};
    return made;
  };
  MessageField rival, number, inner;
  rival.number = 7;
  rival.type = FieldType::bytes;
  number.number = 2;
  number.type = FieldType::enumeration;
  number.names = {{-1, "minus"}, {3, "three"}};
  number.oneof = {number, rival};
  inner.number = 9;
  inner.type = FieldType::message;
  const FeatureSchema schema({path_spec("a", {number}), path_spec("b", {inner, number})});
  const FeatureSchema copy = FeatureSchema::decode(schema.encode());
  CHECK(copy.encode() == schema.encode());
  CHECK(copy[1].spec.path->fields == std::vector<MessageField>{inner, number});
  CHECK(copy.message()->nodes.size() == 2);

  MessageField other = number, repeated = number, unordered = number;
  other.type = FieldType::int32;
  repeated.repeated = true;
  unordered.names = {{3, "three"}, {-1, "minus"}};
  const auto refused = [&](std::vector<FeatureSpec> specs) {
    CHECK_THROWS_AS(FeatureSchema(std::move(specs)), Error);
  };
  refused({path_spec("a", {})});
  refused({path_spec("a", {inner})});
  refused({path_spec("a", {number, number})});
  refused({path_spec("a", {unordered})});
  refused({path_spec("a", {repeated})});  // whose rows have no fixed layout
  refused({path_spec("a", {number}), path_spec("b", {other})});
  refused({path_spec("a", {number}), path_spec("b", {number})});
  refused({path_spec("a", {number}), spec("b", &kFixedLayout, ValueType::int32)});
  refused({spec("b", &kFixedLayout, ValueType::float64)});
}

TEST_CASE("every type of values has a name and is found by it") {
  for (const ListKind kind : {ListKind::bytes, ListKind::floats, ListKind::ints}) {
    for (const char* name : names_of_value_types(kind)) {
      const ValueType type = value_type_named(name);
      CHECK(std::string(name_of(type)) == name);
      CHECK(list_kind_of(type) == kind);
    }
  }
  CHECK(names_of_value_types(ListKind::ints).size() == 8);
}
