#include <doctest/doctest.h>

#include <cstring>

#include "core/read/record_batch.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

RecordBatch batch_of(const std::vector<std::string>& records) {
  RecordBatch batch(records.size());
  for (std::size_t row = 0; row < records.size(); ++row) {
    batch.offsets()[row + 1] =
        batch.offsets()[row] + static_cast<std::int64_t>(records[row].size());
    batch.indices()[row] = static_cast<std::int64_t>(100 + row);
  }
  batch.allocate_data();
  for (std::size_t row = 0; row < records.size(); ++row) {
    if (records[row].empty()) continue;
    std::memcpy(batch.data() + batch.offsets()[row], records[row].data(), records[row].size());
  }
  return batch;
}

}  // namespace

TEST_CASE("record batch: rows lie side by side") {
  const RecordBatch batch = batch_of({"one", "", "three"});
  CHECK(batch.size() == 3);
  CHECK(strings_of(batch) == std::vector<std::string>{"one", "", "three"});
  CHECK(batch.data_bytes() == 8);
  CHECK(batch.indices()[2] == 102);
  CHECK(batch.valid()[0]);
}

TEST_CASE("record batch: no rows") {
  const RecordBatch batch;
  CHECK(batch.size() == 0);
  CHECK(batch.data_bytes() == 0);
}

TEST_CASE("record batch: rows that are left out close their gaps") {
  const std::vector<std::string> records = {"one", "", "three", "four", ""};
  for (unsigned pattern = 0; pattern < 32; ++pattern) {
    RecordBatch batch = batch_of(records);
    batch.valid()[3] = false;
    std::vector<bool> marked;
    std::vector<std::string> left;
    std::vector<std::int64_t> indices;
    for (unsigned row = 0; row < 5; ++row) {
      marked.push_back((pattern >> row & 1) != 0);
      if (!marked.back()) left.push_back(records[row]), indices.push_back(100 + row);
    }
    batch.remove_rows(marked);
    CHECK(strings_of(batch) == left);
    for (std::size_t row = 0; row < left.size(); ++row) {
      CHECK(batch.indices()[row] == indices[row]);
      CHECK(batch.valid()[row] == (indices[row] != 103));
    }
  }
}

TEST_CASE("record batch: truncation keeps the first rows") {
  for (std::size_t rows = 0; rows <= 3; ++rows) {
    RecordBatch batch = batch_of({"one", "two", "three"});
    batch.truncate(rows);
    CHECK(batch.size() == rows);
    if (rows == 2) CHECK(strings_of(batch) == std::vector<std::string>{"one", "two"});
  }
}
