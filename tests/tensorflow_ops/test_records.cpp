#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "core/storage/local/local_file.h"
#include "core/storage/storage.h"
#include "fake_c_api.h"
#include "source_fixture.h"
#include "tensorflow/kernel_call.h"
#include "tensorflow/reading.h"
#include "tensorflow/reading_ops.h"

using namespace tfrfast;
using namespace tfrfast::tensorflow;
using namespace tfrfast::testing;
using namespace tfrfast::tensorflow::testing;

namespace {

using Strings = std::vector<std::string>;

// The place of a record's payload.
std::uint64_t payload_offset(const TestShard& shard, std::size_t record) {
  return shard.offset(record) + 12;
}

// A mapped file of this machine that is never in memory, and the ranges that were announced.
struct Cold {
  std::string bytes;
  std::vector<FileRange> announced;

  static Cold& instance() {
    static auto* const cold = new Cold;
    return *cold;
  }
};

FileFacts facts_of_it(const std::string&, const StorageOptions&) {
  return {Cold::instance().bytes.size(), 1, {{1, 0, 0}}, true, {}};
}

class ColdFile final : public StoredFile {
 public:
  explicit ColdFile(const std::string& path)
      : StoredFile(path, facts_of_it(path, {}), kLocalTraits,
                   reinterpret_cast<const std::uint8_t*>(Cold::instance().bytes.data())) {}
  void read(std::span<const ReadRange> ranges) const override {
    for (const ReadRange& each : ranges) std::memcpy(each.out, mapping() + each.offset, each.bytes);
  }
  std::unique_ptr<Announcement> announce(std::span<const FileRange> ranges,
                                         Reads reads) const noexcept override {
    CHECK(reads == Reads::in_order);
    Cold::instance().announced.insert(Cold::instance().announced.end(), ranges.begin(),
                                      ranges.end());
    return nullptr;
  }
};

constexpr Storage kCold = {
    "cold",
    kLocalTraits,
    [](const std::string& path, IoMode, const StorageOptions&)
        -> std::shared_ptr<const StoredFile> { return std::make_shared<ColdFile>(path); },
    facts_of_it,
};

}  // namespace

TEST_CASE("records: blocks of a file that is not in memory are announced in order") {
  add_storage(kCold);
  const TemporaryFolder folder;
  const TestShard shard = std::move(write_shards(folder, {40}, 100'000)[0]);
  Cold& cold = Cold::instance();
  cold.bytes = shard.bytes();
  SourceSpec spec;
  spec.index_use = IndexUse::memory;
  spec.shards.push_back({"cold://shard", 0, 0});
  const auto source = std::make_shared<const Source>(std::move(spec));
  Cursor cursor = beginning_of(*source);
  FileWalk walk(*source, kEverything, cursor);
  for (auto stop = FileWalk::PassEnd::enough; stop == FileWalk::PassEnd::enough;) {
    std::vector<Row> rows;
    stop = walk.pass(1000, 1 << 20, &rows).stop;
    CHECK(payloads_of(read_rows(source, rows)).size() == rows.size());
  }
  std::uint64_t end = 0;
  for (const FileRange& each : cold.announced) {
    CHECK(each.offset == end);
    end += each.bytes;
  }
  CHECK(end == cold.bytes.size());
}

TEST_CASE("records: a block is what precedes the damage, the error and the rest") {
  const TemporaryFolder folder;
  auto shards = write_shards(folder, {5}, 100);
  shards[0].flip_bit(payload_offset(shards[0], 2));
  const TestShard& shard = shards[0];
  const ReadBatch read = read_to_error(streamed_source(shards));
  CHECK(payloads_of(read) ==
        Strings{shard.record(0), shard.record(1), shard.record(3), shard.record(4)});
  CHECK(read.rows_before_error() == 2);
  CHECK(decode_error(read.error()).code == Code::data_loss);
  CHECK(holds(read.error(), shard.path()));
}

TEST_CASE("records: damage that is skipped leaves no error") {
  const TemporaryFolder folder;
  auto shards = write_shards(folder, {4}, 100);
  shards[0].flip_bit(payload_offset(shards[0], 0));
  SourceSpec options;
  options.skip_damage = true;
  const ReadBatch records = read_to_error(streamed_source(shards, options));
  CHECK(records.error() == "");
  CHECK(records.rows == std::vector<std::size_t>{1, 2, 3});
  CHECK(payloads_of(records) ==
        Strings{shards[0].record(1), shards[0].record(2), shards[0].record(3)});
}

TEST_CASE("records: the first of several errors is told, and how many follow it") {
  const TemporaryFolder folder;
  auto shards = write_shards(folder, {5}, 100);
  shards[0].flip_bit(payload_offset(shards[0], 3));
  shards[0].flip_bit(payload_offset(shards[0], 1));
  const ReadBatch both = read_to_error(streamed_source(shards));
  shards[0].flip_bit(payload_offset(shards[0], 4));
  const ReadBatch all = read_to_error(streamed_source(shards));
  shards[0].flip_bit(payload_offset(shards[0], 3)).flip_bit(payload_offset(shards[0], 4));
  const ReadBatch first = read_to_error(streamed_source(shards));
  CHECK(both.error() == first.error() + " 1 more error follows.");
  CHECK(all.error() == first.error() + " 2 more errors follow.");
}

TEST_CASE("records: a missing file is an error when its turn comes") {
  const TemporaryFolder folder;
  auto shards = write_shards(folder, {1, 1});
  std::filesystem::remove(shards[1].path());
  const ReadBatch records = read_to_error(std::make_shared<const Source>(streamed_spec(shards)));
  CHECK(payloads_of(records) == Strings{shards[0].record(0)});
  CHECK(decode_error(records.error()).code == Code::not_found);
}

TEST_CASE("records: a file that is cut short gives what it still has, then an error") {
  const TemporaryFolder folder;
  auto shards = write_shards(folder, {3}, 100);
  shards[0].truncate_to(shards[0].size() - 1);
  const ReadBatch records = read_to_error(streamed_source(shards));
  CHECK(decode_error(records.error()).code == Code::data_loss);
  CHECK(payloads_of(records) == Strings{shards[0].record(0), shards[0].record(1)});
}

TEST_CASE("records: a tail that is too short for a header is the end, as it is to TensorFlow") {
  const TemporaryFolder folder;
  auto shards = write_shards(folder, {2}, 100);
  shards[0].append("tail");
  const ReadBatch records = read_to_error(streamed_source(shards));
  CHECK(records.error() == "");
  CHECK(payloads_of(records).size() == 2);
}

TEST_CASE("source: a planned one refuses data of other sizes or counts") {
  const TemporaryFolder folder;
  const auto shards = write_shards(folder, {3}, 100);
  SourceSpec spec = planned_source(shards)->spec();
  ++spec.shards[0].record_count;
  const Environment no_cache("TFRFAST_CACHE_DIR", folder.path());
  const Error error = error_of([&] { Source{spec}; });
  CHECK(error.kind() == ErrorKind::stale_index);
  CHECK(holds(error.message(), shards[0].path()));
}

TEST_CASE("source: records are read in the order that they are asked for") {
  const TemporaryFolder folder;
  const auto shards = write_shards(folder, {2, 2}, 100);
  const std::vector<std::int64_t> numbers = {3, 0, 3, 1};
  const auto source = planned_source(shards);
  std::vector<Row> rows(numbers.size());
  source->records()->reader()->locate(numbers, rows.data());
  const ReadBatch records = read_rows(source, std::move(rows));
  CHECK(payloads_of(records) == Strings{shards[1].record(1), shards[0].record(0),
                                        shards[1].record(1), shards[0].record(1)});
}

TEST_CASE("source: it no longer fits when a file has changed") {
  const TemporaryFolder folder;
  auto shards = write_shards(folder, {2, 2}, 100);
  const auto source = planned_source(shards);
  CHECK(source->still_fits());
  shards[1].write_record("more");
  CHECK_FALSE(source->still_fits());
}
