// Decodes any bytes as a batch of records, with a schema of every kind of feature. No byte outside
// the records is read, and the fast path gives the same values as the exact path. Also decodes the
// bytes as SequenceExamples.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/example/decode.h"
#include "core/example/record_kind.h"
#include "core/example/sequence.h"
#include "core/example/survey.h"
#include "core/keys/record_content.h"

using namespace tfrfast;

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

std::shared_ptr<const FeatureSchema> make_schema(const Layout* without = nullptr,
                                                 bool inferred = false) {
  std::vector<FeatureSpec> specs = {
      spec("i", &kFixedLayout, ValueType::int64),
      spec("i2", &kFixedLayout, ValueType::int64, {2}),
      spec("f", &kFixedLayout, ValueType::float32, {2}),
      spec("s", &kFixedLayout, ValueType::bytes),
      spec("n", &kFixedLayout, ValueType::uint8),
      spec("r", &kFixedLayout, ValueType::raw),
      spec("pi", &kPaddedLayout, ValueType::int64, {2}),
      spec("ps", &kPaddedLayout, ValueType::bytes),
      spec("vi", &kRaggedLayout, ValueType::int64),
      spec("vf", &kRaggedLayout, ValueType::float32),
      spec("vs", &kRaggedLayout, ValueType::bytes),
      spec("xi", &kSparseLayout, ValueType::int64),
      spec("xs", &kSparseLayout, ValueType::bytes),
      spec("a rather long name", &kRaggedLayout, ValueType::boolean),
      spec("t", &kRaggedLayout, ValueType::tensor),
  };
  specs.back().tensor = TensorForm{19, {-1, 3}};
  if (without) {
    std::erase_if(specs, [&](const FeatureSpec& made) { return made.layout == without; });
  }
  for (FeatureSpec& made : specs) {
    if (made.layout != &kFixedLayout) continue;
    made.default_value.emplace();
    const std::size_t values = made.shape.empty() ? 1 : 2;
    if (made.type == ValueType::raw) made.raw_bytes = 3;
    if (made.type == ValueType::bytes) {
      made.default_value->strings = {"default"};
    } else {
      const std::size_t item = made.type == ValueType::raw ? 3 : item_bytes_of(made.type);
      made.default_value->numbers.assign(values * item, 7);
    }
  }
  for (FeatureSpec& made : specs) made.inferred = inferred;
  return std::make_shared<const FeatureSchema>(std::move(specs));
}

// The contents of all columns, as bytes that can be compared.
std::string contents_of(const std::vector<Column>& columns) {
  std::string all;
  const auto add = [&](const PooledBuffer& buffer, std::size_t bytes) {
    all.append(reinterpret_cast<const char*>(buffer.data()), bytes);
  };
  for (const Column& column : columns) {
    for (const std::int64_t size : column.shape) all += std::to_string(size) + ",";
    std::size_t bytes = column.value_count * item_bytes_of(column.type);
    if (column.type == ValueType::raw) bytes = column.value_count * 3;
    if (column.type == ValueType::tensor) bytes = column.value_count * 6;
    if (column.type == ValueType::bytes) {
      add(column.offsets, (column.value_count + 1) * 8);
      bytes = static_cast<std::size_t>(column.offsets.as<std::int64_t>()[column.value_count]);
    }
    add(column.values, bytes);
    if (column.layout == &kRaggedLayout) add(column.row_splits, (column.rows + 1) * 8);
    if (column.layout == &kSparseLayout) add(column.indices, column.value_count * 16);
  }
  return all;
}

// The records' contents, or the error's message. The outcome must be the same in whatever way the
// records are passed.
std::string outcome_of(BatchDecoder& decoder, const std::vector<WireBytes>& records) {
  try {
    decoder.begin(records.size());
    for (const WireBytes& record : records) decoder.decode({&record, 1}, {});
    return contents_of(decoder.finish());
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::feature) std::abort();
    return "refused: " + error.message();
  }
}

void decode_sequences(SequenceDecoder& decoder, const std::vector<WireBytes>& records) {
  try {
    decoder.begin(records.size());
    decoder.decode(records, {});
    for (const StepColumn& column : decoder.finish().sequences) {
      const auto* splits = column.row_splits.as<std::int64_t>();
      if (splits[records.size()] != static_cast<std::int64_t>(column.steps.rows)) std::abort();
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::feature) std::abort();
  }
}

void survey(const std::vector<WireBytes>& records) {
  try {
    Survey all(false);
    for (const WireBytes& record : records) all.add(record, 0);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::feature) std::abort();
  }
}

// Records of equal content have no feature that differs, and decode to the same values.
void compare_contents(BatchDecoder& decoder, const std::vector<WireBytes>& records) {
  ContentHasher hasher;
  for (const WireBytes& one : records) {
    for (const WireBytes& other : records) {
      FeatureDifferences differences;
      const bool by_features = differences.add(one, other);
      const bool same = hasher.hash(one).content == hasher.hash(other).content;
      if (by_features && same != differences.differences().empty()) std::abort();
      if (!same) continue;
      const std::string ours = outcome_of(decoder, {one}), theirs = outcome_of(decoder, {other});
      const bool refused = ours.rfind("refused: ", 0) == 0;
      if (refused ? theirs.rfind("refused: ", 0) != 0 : ours != theirs) std::abort();
    }
  }
}

// An unknown field in front makes a record unusual, and does not change its meaning.
std::vector<std::uint8_t> made_unusual(WireBytes record) {
  std::vector<std::uint8_t> bytes = {0x78, 0x01};
  bytes.insert(bytes.end(), record.begin(), record.end());
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto schema = make_schema();
  static const auto context = make_schema(&kPaddedLayout);
  static const auto lists = make_schema(&kFixedLayout);
  static BatchDecoder experienced(schema);
  static SequenceDecoder sequences(context, lists);

  // Records are cut at 0xfe 0xff, each into memory of exactly its size.
  std::vector<std::vector<std::uint8_t>> cut(1);
  for (std::size_t i = 0; i < size; ++i) {
    if (i + 1 < size && data[i] == 0xfe && data[i + 1] == 0xff && cut.size() < 5) {
      cut.emplace_back();
      ++i;
    } else {
      cut.back().push_back(data[i]);
    }
  }
  std::vector<std::unique_ptr<std::uint8_t[]>> owners;
  std::vector<WireBytes> records, unusual;
  const auto place = [&](const std::vector<std::uint8_t>& bytes, std::vector<WireBytes>& into) {
    owners.push_back(std::make_unique<std::uint8_t[]>(bytes.size()));
    if (!bytes.empty()) std::memcpy(owners.back().get(), bytes.data(), bytes.size());
    into.emplace_back(owners.back().get(), bytes.size());
  };
  for (const auto& bytes : cut) {
    place(bytes, records);
    place(made_unusual(bytes), unusual);
  }

  BatchDecoder fresh(schema);
  const std::string expected = outcome_of(fresh, records);
  if (outcome_of(experienced, records) != expected) std::abort();
  const std::string exact = outcome_of(experienced, unusual);
  const bool refused = expected.rfind("refused: ", 0) == 0;
  if (refused ? exact.rfind("refused: ", 0) != 0 : exact != expected) std::abort();

  // A description that was inferred refuses records of other kinds, and changes nothing else.
  static BatchDecoder strict(make_schema(nullptr, true));
  const std::string outcome = outcome_of(strict, records);
  const bool examples_alone = std::all_of(records.begin(), records.end(), [](WireBytes record) {
    return kind_of(record) == RecordKind::example;
  });
  const bool is_refused = outcome.rfind("refused: ", 0) == 0;
  if (refused || !examples_alone ? !is_refused : outcome != expected) std::abort();

  decode_sequences(sequences, records);
  survey(records);
  compare_contents(experienced, records);
  return 0;
}
