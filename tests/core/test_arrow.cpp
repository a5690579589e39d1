#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "core/arrow/column_data.h"
#include "core/arrow/scan_stream.h"
#include "core/base/error.h"
#include "core/example/encode.h"
#include "core/order/in_order.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

ArrowField field_of(const char* name, const char* format, std::vector<ArrowField> children = {}) {
  ArrowField field;
  field.name = name;
  field.format = format;
  field.children = std::move(children);
  return field;
}

ArrowData numbers_of(const std::vector<std::int64_t>& values) {
  PooledBuffer memory(values.size() * sizeof(std::int64_t) + 1);
  std::memcpy(memory.data(), values.data(), values.size() * sizeof(std::int64_t));
  ArrowData data;
  data.length = static_cast<std::int64_t>(values.size());
  data.buffers.emplace_back();
  data.buffers.emplace_back(std::move(memory));
  return data;
}

const std::int64_t* ints_of(const ArrowArray& array) {
  return static_cast<const std::int64_t*>(array.buffers[1]);
}

// An Example with the feature `id`. Every third Example also has `odd`.
std::string example_of(std::int64_t id) {
  ColumnSource number;
  number.name = "id";
  number.kind = ListKind::ints;
  number.ints = &id;
  number.row_values = 1;
  std::vector<ColumnSource> sources = {number};
  number.name = "odd";
  if (id % 3 == 0) sources.push_back(number);
  const auto batch = encode_examples(sources, 1, 1);
  return {reinterpret_cast<const char*>(batch->data()), batch->data_bytes()};
}

FeatureSpec spec_of(const char* name, bool has_default) {
  FeatureSpec spec;
  spec.name = name;
  if (has_default) spec.default_value.emplace().numbers.assign(sizeof(std::int64_t), 7);
  return spec;
}

ArrowScan scan_of(const TemporaryFolder& folder, std::int64_t records, unsigned threads) {
  TestShard shard(folder / "shard");
  for (std::int64_t i = 0; i < records; ++i) shard.write_record(example_of(i));
  ArrowScan scan;
  scan.source = open_reader({folder / "shard"});
  scan.plan.order = std::make_shared<const InOrder>(records);
  scan.plan.batch_size = 10;
  scan.features = std::make_shared<const FeatureSchema>(
      std::vector<FeatureSpec>{spec_of("id", false), spec_of("odd", true)});
  scan.columns = {{field_of("id", "l"), 0},
                  {field_of("odd", "l"), 1},
                  {field_of("record", "l"), ScanColumn::kRecordNumber}};
  scan.loader = {threads, 4, true, true};
  return scan;
}

}  // namespace

TEST_CASE("a child that was moved away outlives its parent") {
  ArrowData parent;
  parent.length = 2;
  parent.buffers.emplace_back();
  parent.children = {numbers_of({1, 2}), numbers_of({3, 4})};
  ArrowArray array;
  export_array(std::move(parent), &array);
  ArrowArray child = *array.children[1];
  array.children[1]->release = nullptr;
  array.release(&array);
  CHECK(!array.release);
  CHECK(ints_of(child)[1] == 4);
  child.release(&child);
  CHECK(!child.release);
}

TEST_CASE("a type owns its names, children, metadata and dictionary") {
  ArrowSchema schema;
  {
    ArrowField list = field_of("rows", "+L", {field_of("item", "+w:3", {field_of("x", "f")})});
    list.nullable = true;
    list.metadata = {{"key", "a value"}};
    list.dictionary = std::make_shared<const ArrowField>(field_of("", "U"));
    export_schema(list, &schema);
  }
  CHECK(std::string(schema.name) == "rows");
  CHECK(schema.flags == ARROW_FLAG_NULLABLE);
  CHECK(std::string(schema.children[0]->children[0]->format) == "f");
  CHECK(std::string(schema.dictionary->format) == "U");
  std::int32_t numbers[2];
  std::memcpy(numbers, schema.metadata, sizeof numbers);
  CHECK(numbers[0] == 1);
  CHECK(numbers[1] == 3);
  ArrowSchema moved = *schema.children[0];
  schema.children[0]->release = nullptr;
  schema.release(&schema);
  CHECK(std::string(moved.format) == "+w:3");
  moved.release(&moved);
}

TEST_CASE("a row that its steps do not divide is an error that names the record") {
  Column column;
  column.name = "steps";
  column.layout = &kRaggedLayout;
  column.rows = 2;
  column.values = PooledBuffer(8 * sizeof(std::int64_t));
  column.row_splits = PooledBuffer(3 * sizeof(std::int64_t));
  const std::int64_t splits[] = {0, 4, 7};
  std::memcpy(column.row_splits.data(), splits, sizeof splits);
  const ArrowField field =
      field_of("steps", "+L", {field_of("item", "+w:2", {field_of("item", "l")})});
  const std::int64_t numbers[] = {40, 41};
  try {
    (void)column_data(std::move(column), field, numbers);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::feature);
    CHECK(error.place().record == 41);
  }
}

TEST_CASE("batches of a stream outlive it and its reader, and are released by other threads") {
  const TemporaryFolder folder;
  ArrowArrayStream stream;
  export_scan(scan_of(folder, 40, 2), &stream);
  ArrowArray batches[4];
  for (ArrowArray& batch : batches) REQUIRE(stream.get_next(&stream, &batch) == 0);
  ArrowArray end;
  CHECK(stream.get_next(&stream, &end) == 0);
  CHECK(!end.release);
  stream.release(&stream);
  std::vector<std::thread> threads;
  for (ArrowArray& batch : batches) {
    threads.emplace_back([&batch] {
      ArrowArray child = *batch.children[0];
      batch.children[0]->release = nullptr;
      batch.release(&batch);
      CHECK(ints_of(child)[9] % 10 == 9);
      child.release(&child);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_CASE("a stream that is left early stops its threads") {
  const TemporaryFolder folder;
  ArrowArrayStream stream;
  export_scan(scan_of(folder, 500, 3), &stream);
  ArrowArray batch;
  REQUIRE(stream.get_next(&stream, &batch) == 0);
  stream.release(&stream);
  CHECK(!stream.release);
  CHECK(ints_of(*batch.children[0])[9] == 9);
  batch.release(&batch);
}
