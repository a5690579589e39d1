#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "core/example/encode.h"
#include "core/example/varints.h"

using namespace tfrfast;

namespace {

std::vector<std::int64_t> values_of_every_length() {
  std::vector<std::int64_t> values = {0, -1, std::numeric_limits<std::int64_t>::min()};
  for (int bits = 0; bits < 63; ++bits) {
    values.push_back(std::int64_t{1} << bits);
    values.push_back((std::int64_t{1} << bits) - 1);
    values.push_back(-(std::int64_t{1} << bits));
  }
  return values;
}

}  // namespace

TEST_CASE("varint writers: all agree, stay inside, and are read back") {
  std::mt19937_64 random(0);
  const VarintWriter* portable = varint_writer("portable");
  REQUIRE(portable != nullptr);
  for (const char* name : {"portable", "bmi2"}) {
    const VarintWriter* writer = varint_writer(name);
    if (writer == nullptr) continue;
    for (int round = 0; round < 300; ++round) {
      std::vector<std::int64_t> values = values_of_every_length();
      std::shuffle(values.begin(), values.end(), random);
      values.resize(random() % values.size());
      const std::size_t bytes = writer->measure(values.data(), values.size());
      CHECK(bytes == portable->measure(values.data(), values.size()));
      std::vector<std::uint8_t> out(bytes + 16, 0xee);
      CHECK(writer->write(values.data(), values.size(), out.data(), out.data() + bytes) ==
            out.data() + bytes);
      CHECK(std::vector<std::uint8_t>(out.begin() + static_cast<std::ptrdiff_t>(bytes),
                                      out.end()) == std::vector<std::uint8_t>(16, 0xee));
      std::vector<std::uint8_t> expected(bytes);
      portable->write(values.data(), values.size(), expected.data(), expected.data() + bytes);
      out.resize(bytes);
      CHECK(out == expected);
      CHECK(count_varints({out.data(), bytes}) == values.size());
    }
  }
}

TEST_CASE("varint writers: values that have grown since they were measured are not written") {
  for (const char* name : {"portable", "bmi2"}) {
    const VarintWriter* writer = varint_writer(name);
    if (writer == nullptr) continue;
    const std::vector<std::int64_t> values = values_of_every_length();
    const std::size_t bytes = writer->measure(values.data(), values.size());
    for (std::size_t space = 0; space < bytes; ++space) {
      std::vector<std::uint8_t> out(bytes + 16, 0xee);
      CHECK(writer->write(values.data(), values.size(), out.data(), out.data() + space) == nullptr);
      CHECK(std::all_of(out.begin() + static_cast<std::ptrdiff_t>(space), out.end(),
                        [](std::uint8_t byte) { return byte == 0xee; }));
    }
  }
}

TEST_CASE("encode: the same bytes on any number of threads") {
  const std::size_t rows = 5000;
  std::mt19937_64 random(1);
  std::vector<std::int64_t> ints(rows * 3);
  for (std::int64_t& value : ints) value = static_cast<std::int64_t>(random() >> (random() % 64));
  std::vector<std::int64_t> splits = {0};
  while (splits.size() <= rows) {
    splits.push_back(std::min<std::int64_t>(splits.back() + static_cast<std::int64_t>(random() % 6),
                                            static_cast<std::int64_t>(ints.size())));
  }
  const std::vector<float> floats(rows * 2, 1.5f);
  const auto present = std::make_unique<bool[]>(rows);
  for (std::size_t row = 0; row < rows; ++row) present[row] = random() % 2 == 0;

  std::vector<ColumnSource> columns(3);
  columns[0] = {.name = "z", .kind = ListKind::ints, .row_values = 3, .ints = ints.data()};
  columns[1] = {.name = "ragged",
                .kind = ListKind::ints,
                .row_splits = splits.data(),
                .ints = ints.data(),
                .present = present.get()};
  columns[2] = {.name = "f", .kind = ListKind::floats, .row_values = 2, .floats = floats.data()};
  const auto alone = encode_examples(columns, rows, 1);
  const auto together = encode_examples(columns, rows, 4);
  REQUIRE(alone->data_bytes() == together->data_bytes());
  CHECK(std::equal(alone->data(), alone->data() + alone->data_bytes(), together->data()));
}
