// Decodes any bytes as protobuf messages, with paths to every kind of field. No byte outside the
// records is read. Levels fit into each other. A decoder that has seen other records gives the same
// columns, unknown fields change nothing, and a feature has the same values alone as beside others.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/example/decode.h"
#include "may_throw.h"

using namespace tfrfast;

namespace {

MessageField field(std::uint32_t number, FieldType type, bool repeated = false) {
  MessageField made;
  made.number = number;
  made.type = type;
  made.repeated = repeated;
  made.checks_utf8 = type == FieldType::string;
  if (type == FieldType::enumeration) {
    made.is_closed = number % 2 == 0;
    made.names = {{-1, "minus"}, {0, "zero"}, {1, "one"}};
  }
  return made;
}

FeatureSpec spec(std::vector<MessageField> fields, PathContent content = PathContent::values) {
  FeatureSpec made;
  bool is_nested = false;
  for (const MessageField& each : fields) {
    made.name += std::to_string(each.number) + ".";
    is_nested = is_nested || each.repeated;
  }
  made.name += std::to_string(static_cast<int>(content));
  made.path = MessagePath{"t.M", std::move(fields), content};
  made.layout = is_nested ? &kRaggedLayout : &kFixedLayout;
  made.type = made.path->value_type();
  return made;
}

std::vector<FeatureSpec> all_specs() {
  const MessageField items = field(1, FieldType::message, true);
  const MessageField parts = field(2, FieldType::message, true);
  const MessageField group = field(3, FieldType::group);
  MessageField map = field(4, FieldType::message, true);
  map.entry = {field(1, FieldType::string), field(2, FieldType::message)};
  MessageField numbers = field(5, FieldType::message, true);
  numbers.entry = {field(1, FieldType::sint32), field(2, FieldType::enumeration)};
  // The members of a oneof, of which an enum that is closed is not read.
  MessageField number = field(6, FieldType::int32), text = field(7, FieldType::string),
               message = field(8, FieldType::message);
  const std::vector<MessageField> oneof = {number, text, message,
                                           field(14, FieldType::enumeration)};
  number.oneof = text.oneof = message.oneof = oneof;
  std::vector<FeatureSpec> specs = {
      spec({field(9, FieldType::float64, true)}),
      spec({field(10, FieldType::enumeration, true)}, PathContent::names),
      spec({field(11, FieldType::enumeration, true)}),
      spec({field(12, FieldType::bytes, true)}),
      spec({field(100, FieldType::boolean)}),
      spec({field(13, FieldType::sint64, true)}),
      spec({number}),
      spec({text}),
      spec({text}, PathContent::presence),
      spec({message, field(1, FieldType::fixed32, true)}),
      spec({message, map, map.entry[0]}),
      spec({items, field(1, FieldType::uint64)}),
      spec({items, parts, field(1, FieldType::float32, true)}),
      spec({items, parts, field(2, FieldType::bytes)}),
      spec({items, group, field(1, FieldType::string)}),
      spec({items, group}, PathContent::presence),
      spec({map, map.entry[0]}),
      spec({map, map.entry[1], field(1, FieldType::int64, true)}),
      spec({map, map.entry[1], numbers, numbers.entry[0]}),
      spec({numbers, numbers.entry[1]}),
  };
  specs[4].default_value = DefaultValue{{1}, {}};
  specs[7].default_value = DefaultValue{{}, {"default"}};
  return specs;
}

std::shared_ptr<const FeatureSchema> schema_of(std::vector<FeatureSpec> specs) {
  return std::make_shared<const FeatureSchema>(std::move(specs));
}

// Requires that splits ascend to the number of items. Returns them as text.
std::string checked(const PooledBuffer& splits, std::size_t rows, std::size_t items) {
  std::string text;
  const auto* const starts = splits.as<std::int64_t>();
  require(starts[0] == 0 && starts[rows] == static_cast<std::int64_t>(items));
  for (std::size_t row = 0; row <= rows; ++row) {
    require(row == 0 || starts[row - 1] <= starts[row]);
    text += std::to_string(starts[row]) + ",";
  }
  return text + ";";
}

std::string contents_of(const Column& column) {
  std::string all;
  if (column.row_splits.data() != nullptr) {
    const auto& inner = column.inner_splits;
    for (std::size_t level = 0; level <= inner.size(); ++level) {
      const std::size_t items = level < inner.size() ? inner[level].rows : column.value_count;
      all += level == 0 ? checked(column.row_splits, column.rows, items)
                        : checked(inner[level - 1].splits, inner[level - 1].rows, items);
    }
  } else {
    require(column.value_count == column.rows);
  }
  std::size_t bytes = column.value_count * item_bytes_of(column.type);
  if (column.type == ValueType::bytes) {
    bytes = static_cast<std::size_t>(column.offsets.as<std::int64_t>()[column.value_count]);
    all += checked(column.offsets, column.value_count, bytes);
  }
  all.append(reinterpret_cast<const char*>(column.values.data()), bytes);
  return all;
}

// The contents of all columns, or nothing if the records are refused.
std::vector<std::string> outcome_of(BatchDecoder& decoder, const std::vector<WireBytes>& records) {
  std::vector<std::string> contents;
  try {
    decoder.begin(records.size());
    for (const WireBytes& record : records) decoder.decode({&record, 1}, {});
    for (const Column& column : decoder.finish()) contents.push_back(contents_of(column));
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::feature && !error.message().empty());
  }
  return contents;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto schema = schema_of(all_specs());
  static BatchDecoder experienced(schema);
  static const auto alone = [] {
    std::vector<std::unique_ptr<BatchDecoder>> decoders;
    for (const FeatureSpec& each : all_specs()) {
      decoders.push_back(std::make_unique<BatchDecoder>(schema_of({each})));
    }
    return decoders;
  }();

  // Two records, each in memory of exactly its size, and the second with unknown fields around it.
  // The first byte says where they are cut.
  if (size == 0) return 0;
  const std::size_t first = *data++ % size--;
  std::vector<std::uint8_t> padded = {0xf8, 0x7f, 0x01};
  padded.insert(padded.end(), data + first, data + size);
  padded.insert(padded.end(), {0xfb, 0x7f, 0x08, 0x01, 0xfc, 0x7f});
  const auto copy_of = [](const std::uint8_t* bytes, std::size_t count) {
    auto copy = std::make_unique<std::uint8_t[]>(count);
    if (count != 0) std::memcpy(copy.get(), bytes, count);
    return copy;
  };
  const auto one = copy_of(data, first), two = copy_of(data + first, size - first),
             other = copy_of(padded.data(), padded.size());
  const std::vector<WireBytes> records = {{one.get(), first}, {two.get(), size - first}};
  const std::vector<WireBytes> around = {records[0], {other.get(), padded.size()}};

  BatchDecoder fresh(schema);
  const std::vector<std::string> expected = outcome_of(fresh, records);
  require(outcome_of(experienced, records) == expected);
  if (expected.empty()) return 0;
  require(outcome_of(experienced, around) == expected);
  for (std::size_t slot = 0; slot < alone.size(); ++slot) {
    const std::vector<std::string> found = outcome_of(*alone[slot], records);
    require(found.size() == 1 && found[0] == expected[slot]);
  }
  return 0;
}
