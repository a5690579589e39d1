#include <doctest/doctest.h>

#include <algorithm>
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

TEST_CASE("record batch: rows are side by side") {
  const RecordBatch batch = batch_of({"one", "", "three"});
  CHECK(batch.size() == 3);
  CHECK(strings_of(batch) == std::vector<std::string>{"one", "", "three"});
  CHECK(batch.data_bytes() == 8);
  CHECK(batch.indices()[2] == 102);
  CHECK(batch.valid()[0]);
}

TEST_CASE("record batch: what is written into the offsets that it shows changes nothing") {
  RecordBatch batch = batch_of({"one", "", "three"});
  const std::int64_t* shown = batch.offsets_to_show();
  CHECK(std::equal(shown, shown + 4, batch.offsets()));
  std::fill_n(const_cast<std::int64_t*>(shown), 4, -64);
  CHECK(batch.offsets_to_show() == shown);
  CHECK(strings_of(batch) == std::vector<std::string>{"one", "", "three"});
  batch.truncate(2);
  CHECK(std::equal(batch.offsets(), batch.offsets() + 3, batch.offsets_to_show()));
}

TEST_CASE("record batch: a row is padding only where the byte is zero") {
  const RecordBatch batch = batch_of({"one", "", "three"});
  const unsigned char bytes[] = {0, 1, 200};
  std::memcpy(batch.valid(), bytes, 3);
  CHECK_FALSE(batch.is_real(0));
  CHECK(batch.is_real(1));
  CHECK(batch.is_real(2));
}

TEST_CASE("record batch: no rows") {
  const RecordBatch batch;
  CHECK(batch.size() == 0);
  CHECK(batch.data_bytes() == 0);
}

TEST_CASE("record batch: rows that are picked, in any order and as often as they are named") {
  RecordBatch batch = batch_of({"one", "", "three"});
  batch.valid()[0] = false;
  const auto picked = batch.rows(std::vector<std::int64_t>{2, 0, 1, 2});
  CHECK(strings_of(*picked) == std::vector<std::string>{"three", "one", "", "three"});
  CHECK(picked->indices()[1] == 100);
  CHECK_FALSE(picked->valid()[1]);
  CHECK(picked->valid()[2]);
  CHECK(batch.rows({})->size() == 0);
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
