// Shards that are opened at their first read. tests/python/test_lazy_shards.py has more tests.
#include <doctest/doctest.h>
#include <sys/stat.h>

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

TEST_CASE_FIXTURE(Fixture, "lazy shards: joined sets share what either has opened") {
  const auto set = open();
  const auto joined = ShardSet::joined({set, set});
  CHECK(&(*joined)[8] == &(*set)[3]);
  CHECK(opened_of(*set) == 1);
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
