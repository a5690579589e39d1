// Shards that are opened at their first read. tests/python/test_lazy_shards.py has more tests.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <thread>

#include "core/index/folder_writing.h"
#include "core/index/shard_set.h"
#include "core/storage/local/local_file.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

struct Fixture {
  TemporaryFolder place;
  std::string data = place / "data";
  std::vector<std::string> paths;

  Fixture() {
    REQUIRE(::mkdir(data.c_str(), 0777) == 0);
    for (int i = 0; i < 5; ++i) {
      paths.push_back(data + "/shard-" + std::to_string(i));
      TestShard(paths.back()).write_records(static_cast<std::size_t>(i), 30);
      build_index(paths.back(), "", false);
    }
    compact_index(data + ".tfrfast");
  }

  std::shared_ptr<const ShardSet> open(IndexUse use = IndexUse::require,
                                       std::optional<Compression> compression = {}) const {
    ShardSetOptions options;
    options.index.use = use;
    options.index.compression = compression;
    options.max_opened_at_once = 4;
    return ShardSet::open(paths, options);
  }
};

std::size_t opened_of(const ShardSet& set) {
  std::size_t opened = 0;
  for (std::size_t i = 0; i < set.size(); ++i) opened += set.slot(i).opened() != nullptr;
  return opened;
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "lazy shards: what is known of them is what opening them says") {
  const auto lazy = open();
  const auto whole = open(IndexUse::memory);
  CHECK(opened_of(*lazy) == 0);
  CHECK(opened_of(*whole) == 5);
  CHECK(lazy->fingerprint() == whole->fingerprint());
  for (std::size_t i = 0; i < 5; ++i) {
    const ShardSlot& slot = lazy->slot(i);
    CHECK(slot.path() == paths[i]);
    CHECK(slot.name() == whole->slot(i).name());
    CHECK(slot.file_facts() == whole->slot(i).file_facts());
    CHECK(slot.stream_bytes() == whole->slot(i).stream_bytes());
    CHECK(slot.record_count() == i);
    CHECK(slot.index().load()->has_same_entries(*whole->slot(i).index().load()));
    CHECK(slot.opened() == nullptr);
    CHECK((*lazy)[i].index->has_same_entries(*(*whole)[i].index));
    CHECK(&(*lazy)[i] == slot.opened());
  }
}

TEST_CASE_FIXTURE(Fixture, "lazy shards: every accessor agrees with plain offsets") {
  std::vector<std::vector<std::uint64_t>> offsets;  // of each shard, as its writer knows them
  for (std::size_t i = 0; i < paths.size(); ++i) {
    TestShard shard(data + "/other-" + std::to_string(i));
    std::string frames;
    offsets.push_back({0});
    for (std::size_t record = 0; record < i * 1500; ++record) {
      frames += frame_of(payload(record * record % (i == 2 ? 1 : 37), static_cast<unsigned>(i)));
      offsets.back().push_back(frames.size());
    }
    shard.append(frames);
    paths[i] = shard.path();
    build_index(paths[i], "", false);
  }
  compact_index(data + ".tfrfast");
  const auto set = open();
  REQUIRE(opened_of(*set) == 0);
  const Reader reader(set, {});
  std::vector<std::int64_t> numbers;
  std::uint64_t first = 0;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const auto& plain = offsets[i];
    const std::size_t count = plain.size() - 1;
    CHECK(set->slot(i).record_count() == count);
    CHECK(set->slot(i).stream_bytes() == plain.back());
    CHECK(set->first_record(i) == first);
    const auto apart = set->slot(i).index().load();  // without the shard
    CHECK(apart->copy_packed().unpack() == plain);
    CHECK(apart->copy_packed().view().size() == plain.size());
    CHECK(apart->covers_shard());
    bool same = true;
    for (std::size_t number = 0; number < count; ++number) {
      const Row row = reader.locate(first + number);
      const auto pair = row.shard->index->offsets().pair(number);
      same = same && row.number == number && row.frame.offset == plain[number] &&
             row.frame.payload_bytes == plain[number + 1] - plain[number] - kFrameOverhead &&
             row.shard->index->offsets()[number] == plain[number] && pair.begin == plain[number] &&
             pair.next == plain[number + 1] && apart->frame(number).offset == plain[number] &&
             set->place(first + number).shard == i && set->place(first + number).number == number;
      numbers.push_back(static_cast<std::int64_t>(first + number));
    }
    CHECK(same);
    if (count > 0) {
      // As many whole records as fit.
      const auto end = std::upper_bound(plain.begin(), plain.end(), 1000) - plain.begin() - 1;
      CHECK(reader.range_end(first, 1000, 1 << 20) == first + static_cast<std::uint64_t>(end));
    }
    first += count;
  }
  CHECK(set->record_count() == first);
  std::reverse(numbers.begin(), numbers.end());
  std::vector<Row> rows(numbers.size());
  reader.locate(numbers, rows.data());
  bool same = true;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t shard = set->place(static_cast<std::uint64_t>(numbers[i])).shard;
    same = same && rows[i].frame.offset == offsets[shard][rows[i].number];
  }
  CHECK(same);
}

TEST_CASE_FIXTURE(Fixture, "lazy shards: joined sets share what either has opened") {
  const auto set = open();
  const auto joined = ShardSet::joined({set, set});
  CHECK(&(*joined)[8] == &(*set)[3]);
  CHECK(opened_of(*set) == 1);
}

TEST_CASE_FIXTURE(Fixture, "lazy shards: what was added counts, and other kinds are looked at") {
  TestShard(paths[2]).write_records(3, 20);
  CHECK(opened_of(*open(IndexUse::automatic)) == 1);
  build_index(paths[2], "", false);
  CHECK(opened_of(*open()) == 0);
  CHECK(open()->record_count() == 11);
  TestShard(paths[2]).write_records(2, 20);
  build_index(paths[2], "", false);
  CHECK(opened_of(*open(IndexUse::automatic, Compression::none)) == 0);
  CHECK(open(IndexUse::automatic, Compression::none)->record_count() == 10);
}

TEST_CASE_FIXTURE(Fixture, "lazy shards: where identity is weak, headers are compared at opening") {
  const AssumedToLast assumed;
  assume_versions_last(false);
  TestShard shard(paths[4]);
  shard.write_records(4, 30);
  const std::int64_t mtime_ns = shard.mtime_ns();
  build_index(paths[4], "", true);
  compact_index(data + ".tfrfast");
  // The same size, but one record instead of four.
  write_file(paths[4], frame_of(payload(4 * 46 - 16)));
  shard.set_mtime_ns(mtime_ns);
  const auto set = open();
  CHECK(opened_of(*set) == 0);
  const Error error = error_of([&] { (*set)[4]; });
  CHECK(error.kind() == ErrorKind::stale_index);
  CHECK(error.place().path == paths[4]);
  CHECK((*set)[3].index->record_count() == 3);
}

TEST_CASE_FIXTURE(Fixture, "lazy shards: other records of the same lengths have another index") {
  const AssumedToLast assumed;
  assume_versions_last(false);
  const Environment cache("TFRFAST_CACHE_DIR", place / "cache");
  build_index(paths[4], "", true);  // without the version
  TestShard shard(paths[4]);
  for (unsigned i = 0; i < 4; ++i) shard.write_record(payload(30, 1000 + i));
  for (int round = 0; round < 2; ++round) {
    const Reader reader(open(IndexUse::automatic), {});
    const std::vector<std::int64_t> last = {9};
    for (int read = 0; read < 3; ++read) CHECK((*reader.read(last))[0].size() == 30);
  }
}

TEST_CASE_FIXTURE(Fixture, "lazy shards: threads that open one at the same time get the same") {
  for (int round = 0; round < 20; ++round) {
    const auto set = open();
    std::vector<const IndexedShard*> got(4);
    std::vector<std::thread> threads;
    for (auto& each : got) threads.emplace_back([&] { each = &(*set)[4]; });
    for (std::thread& each : threads) each.join();
    for (const IndexedShard* each : got) CHECK(each == got[0]);
  }
}

TEST_CASE_FIXTURE(Fixture, "lazy shards: only so many files are mapped, and the others are read") {
  std::vector<std::shared_ptr<const StoredFile>> files;
  for (std::size_t i = 0; i < kMaxMappings + 10; ++i) {
    files.push_back(open_local_file(paths[4], IoMode::mapped));
  }
  CHECK(files.front()->mapping() != nullptr);
  CHECK(files.back()->mapping() == nullptr);
  std::uint8_t first = 0, last = 1;
  files.front()->read(0, &first, 1);
  files.back()->read(0, &last, 1);
  CHECK(first == last);
  files.clear();
  CHECK(open_local_file(paths[4], IoMode::mapped)->mapping() != nullptr);
}
