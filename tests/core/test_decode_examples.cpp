#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/example/decode.h"
#include "shard_fixture.h"
#include "wire_examples.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

FeatureSpec spec(const char* name, const Layout* layout, ValueType type = ValueType::int64) {
  FeatureSpec made;
  made.name = name;
  made.layout = layout;
  made.type = type;
  return made;
}

BatchDecoder decoder_of(std::vector<FeatureSpec> specs) {
  return BatchDecoder(std::make_shared<const FeatureSchema>(std::move(specs)));
}

std::vector<Column> decode(BatchDecoder& decoder, const std::vector<std::string>& records) {
  std::vector<WireBytes> spans;
  for (const std::string& record : records) spans.push_back(wire_bytes(record));
  decoder.begin(records.size());
  decoder.decode(spans, {});
  return decoder.finish();
}

std::vector<std::int64_t> numbers(const PooledBuffer& buffer, std::size_t count) {
  return {buffer.as<std::int64_t>(), buffer.as<std::int64_t>() + count};
}

using Numbers = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("a batch fed in pieces is the batch fed at once") {
  BatchDecoder decoder = decoder_of({spec("a", &kFixedLayout), spec("b", &kRaggedLayout)});
  const std::vector<std::string> records = {
      example({entry("a", ints({1})), entry("b", ints({1, 2}))}),
      example({entry("b", ints({})), entry("a", ints({2}))}),
      example({entry("a", ints({3}))}),
      example({entry("x", ints({9})), entry("b", ints({4})), entry("a", ints({4}))}),
  };
  for (std::size_t piece = 1; piece <= records.size(); ++piece) {
    decoder.begin(records.size());
    for (std::size_t first = 0; first < records.size(); first += piece) {
      std::vector<WireBytes> spans;
      for (std::size_t i = first; i < std::min(first + piece, records.size()); ++i) {
        spans.push_back(wire_bytes(records[i]));
      }
      decoder.decode(spans, {});
    }
    const std::vector<Column> columns = decoder.finish();
    CHECK(numbers(columns[0].values, 4) == Numbers{1, 2, 3, 4});
    CHECK(columns[0].shape == Numbers{4});
    CHECK(numbers(columns[1].row_splits, 5) == Numbers{0, 2, 2, 2, 3});
    CHECK(numbers(columns[1].values, 3) == Numbers{1, 2, 4});
  }
}

TEST_CASE("a record that turns out unusual leaves no trace of the first attempt") {
  BatchDecoder decoder = decoder_of({spec("a", &kRaggedLayout), spec("s", &kSparseLayout),
                                     spec("t", &kRaggedLayout, ValueType::bytes),
                                     spec("f", &kFixedLayout, ValueType::bytes)});
  const std::string usual = example({entry("a", ints({1})), entry("s", ints({2})),
                                     entry("t", strings({"x"})), entry("f", strings({"y"}))});
  // After all features, the first feature comes again.
  const std::string again =
      example({entry("a", ints({5, 6})), entry("s", ints({7, 8, 9})), entry("t", strings({"long"})),
               entry("f", strings({"z"})), entry("a", ints({3}))});
  const std::vector<Column> columns = decode(decoder, {usual, again, usual});
  CHECK(numbers(columns[0].row_splits, 4) == Numbers{0, 1, 2, 3});
  CHECK(numbers(columns[0].values, 3) == Numbers{1, 3, 1});
  CHECK(numbers(columns[1].indices, 10) == Numbers{0, 0, 1, 0, 1, 1, 1, 2, 2, 0});
  CHECK(columns[1].shape == Numbers{3, 3});
  CHECK(numbers(columns[2].offsets, 4) == Numbers{0, 1, 5, 6});
  CHECK(std::memcmp(columns[3].values.data(), "yzy", 3) == 0);
}

TEST_CASE("a batch that is not packed has no packs of the batch before") {
  BatchDecoder decoder = decoder_of({spec("a", &kPackedLayout)});
  const std::string record = example({entry("a", ints({1, 2}))});
  const std::vector<WireBytes> records = {wire_bytes(record)};
  const std::vector<std::int64_t> tokens = {3};
  PackedRecord packed;
  packed.lengths[0] = 2;
  decoder.begin(1, 2, tokens);
  decoder.decode(records, {}, {}, std::span(&packed, 1));
  const std::vector<Column> columns = decoder.finish();
  CHECK(columns[0].shape == Numbers{2, 3});
  CHECK(numbers(columns[0].values, 6) == Numbers{1, 2, 0, 0, 0, 0});
  decoder.begin(1);
  CHECK(decoder.finish()[0].rows == 0);
}

TEST_CASE("records that are read in place give the columns of records read elsewhere") {
  std::mt19937 random(3);
  const auto image = [&random] {
    const std::size_t bytes = random() % 4 == 0 ? random() % 20'000 : 20'000 + random() % 30'000;
    return std::string(bytes, static_cast<char>(random()));
  };
  std::vector<std::string> records;
  for (int i = 0; i < 300; ++i) {
    const std::string label = entry("label", ints({static_cast<int>(random() % 100)}));
    const std::string name = entry("name", strings({std::string(random() % 9, 'n')}));
    const std::string picture = entry("image", strings({image()}));
    switch (random() % 16) {
      case 0:  // another order
        records.push_back(example({picture, name, label}));
        break;
      case 1:  // more bytes before the string
        records.push_back(example({entry("z", strings({std::string(200, 'z')})), label, picture}));
        break;
      case 2:  // too many bytes before the string
        records.push_back(example({name, entry("z", strings({image()})), label, picture}));
        break;
      case 3:  // a long record without a long string
        records.push_back(example({name, label, entry("z", strings({image()}))}));
        break;
      case 4:  // several strings, which only some layouts accept
        records.push_back(
            example({entry("many", strings({image(), "", image()})), label, picture}));
        break;
      case 5:  // a repeated key
        records.push_back(example({label, entry("image", strings({image()})), name, picture}));
        break;
      case 6:
        records.push_back(example({label, entry("image", strings({""})), name}));
        break;
      default:
        records.push_back(example({label, picture, name}));
    }
  }
  for (const Layout* layout : {&kFixedLayout, &kRaggedLayout, &kPaddedLayout, &kSparseLayout}) {
    FeatureSpec pictures = spec("image", layout, ValueType::bytes);
    FeatureSpec names = spec("name", &kFixedLayout, ValueType::bytes);
    names.default_value = DefaultValue{{}, {"none"}};
    if (layout->has_shape) pictures.default_value = names.default_value;
    const std::vector<FeatureSpec> specs = {spec("label", &kRaggedLayout), pictures, names,
                                            spec("many", &kRaggedLayout, ValueType::bytes)};
    BatchDecoder usual = decoder_of(specs);
    BatchDecoder placing = decoder_of(specs);
    std::size_t placed = 0;
    for (int batch = 0; batch < 3; ++batch) {
      const std::vector<Column> expected = decode(usual, records);
      placing.begin(records.size());
      for (const std::string& record : records) {
        std::uint8_t* const place = placing.place(record.size());
        if (place != nullptr) {
          std::memcpy(place, record.data(), record.size());
          if (random() % 20 == 0) {
            placing.give_up_place();
          } else if (placing.decode_placed({place, record.size()}, 0)) {
            ++placed;
            continue;
          }
        }
        const WireBytes elsewhere = wire_bytes(record);
        placing.decode({&elsewhere, 1}, {});
      }
      const std::vector<Column> columns = placing.finish();
      REQUIRE(columns.size() == expected.size());
      for (std::size_t i = 0; i < columns.size(); ++i) {
        CAPTURE(columns[i].name);
        const std::size_t count = columns[i].value_count;
        REQUIRE(count == expected[i].value_count);
        CHECK(columns[i].shape == expected[i].shape);
        if (columns[i].type != ValueType::bytes) {
          CHECK(numbers(columns[i].values, count) == numbers(expected[i].values, count));
          continue;
        }
        const Numbers offsets = numbers(columns[i].offsets, count + 1);
        REQUIRE(offsets == numbers(expected[i].offsets, count + 1));
        CHECK(std::memcmp(columns[i].values.data(), expected[i].values.data(),
                          static_cast<std::size_t>(offsets.back())) == 0);
      }
    }
    CHECK(placed > 100);
  }
}

TEST_CASE("a description without a meaning is refused") {
  FeatureSpec negative = spec("a", &kFixedLayout);
  negative.shape = {-1};
  refusal([&] { FeatureSchema schema({negative}); });
  FeatureSpec endless = spec("a", &kFixedLayout);
  endless.shape = {std::int64_t{1} << 40, std::int64_t{1} << 40};
  refusal([&] { FeatureSchema schema({endless}); });
  FeatureSpec no_length = spec("a", &kPaddedLayout);
  no_length.shape = {0};
  refusal([&] { FeatureSchema schema({no_length}); });
  FeatureSpec short_default = spec("a", &kFixedLayout);
  short_default.default_value = DefaultValue{{1, 2, 3}, {}};
  refusal([&] { FeatureSchema schema({short_default}); });
  CHECK_THROWS_AS(FeatureSchema({spec("a", &kFixedLayout), spec("a", &kRaggedLayout)}), Error);
}
