#include <doctest/doctest.h>

#include <cerrno>

#include "core/index/shard_set.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

struct Fixture {
  TemporaryFolder folder;

  std::string shard_with(std::size_t records, const std::string& name) const {
    return TestShard(folder / name).write_records(records, 10).path();
  }
  std::shared_ptr<const ShardSet> open(const std::vector<std::string>& paths,
                                       const OpeningProgress& progress = nullptr,
                                       bool skip_damage = false) const {
    ShardSetOptions options;
    options.index.use = IndexUse::memory;
    options.threads = 3;
    options.skip_damage = skip_damage;
    return ShardSet::open(paths, options, progress);
  }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture,
                  "shard set: records are numbered through all shards, empty ones included") {
  const auto set = open({shard_with(0, "a"), shard_with(3, "b"), shard_with(0, "c"),
                         shard_with(0, "d"), shard_with(2, "e"), shard_with(0, "f")});
  REQUIRE(set->size() == 6);
  CHECK(set->record_count() == 5);
  const std::size_t shards[] = {1, 1, 1, 4, 4};
  const std::uint64_t numbers[] = {0, 1, 2, 0, 1};
  for (std::uint64_t record = 0; record < 5; ++record) {
    for (std::size_t hint = 0; hint < set->size(); ++hint) {
      const ShardSet::Place place = set->place(record, hint);
      CHECK(place.shard == shards[record]);
      CHECK(place.number == numbers[record]);
    }
  }
  CHECK(set->first_record(4) == 3);
}

TEST_CASE_FIXTURE(Fixture, "shard set: no shards have no records") {
  CHECK(open({})->size() == 0);
  CHECK(open({})->record_count() == 0);
}

TEST_CASE_FIXTURE(Fixture,
                  "shard set: a shard that is given twice counts twice and is opened once") {
  const std::string a = shard_with(3, "a");
  const std::string b = shard_with(1, "b");
  const auto set = open({a, b, a, a});
  CHECK(set->record_count() == 10);
  CHECK((*set)[0].file == (*set)[2].file);
  CHECK((*set)[0].file == (*set)[3].file);
  CHECK(set->place(9).shard == 3);
}

TEST_CASE_FIXTURE(Fixture, "shard set: of many that cannot be opened the first one is named") {
  std::vector<std::string> paths;
  for (int i = 0; i < 50; ++i) {
    const std::string name = "shard-" + std::to_string(i);
    paths.push_back(i == 7 || i > 20 ? folder / name : shard_with(10, name));
  }
  for (int round = 0; round < 10; ++round) {
    const Error error = error_of([&] { open(paths); });
    CHECK(error.system_error() == ENOENT);
    CHECK(error.place().path == folder / "shard-7");
    CHECK(error_of([&] { open(paths, [](auto, auto) {}); }).place().path == folder / "shard-7");
  }
}

TEST_CASE_FIXTURE(Fixture,
                  "shard set: progress reaches the sum of all bytes, and may end the opening") {
  const std::vector<std::string> paths = {shard_with(1000, "a"), shard_with(2000, "b")};
  std::uint64_t done = 0, all = 0;
  open(paths, [&](std::uint64_t now, std::uint64_t of) { done = now, all = of; });
  CHECK(all == 3000 * 26);
  CHECK(done == all);
  CHECK_THROWS_AS(open(paths, [](auto, auto) { throw 1; }), int);
}

TEST_CASE_FIXTURE(Fixture, "shard set: the fingerprint tells names, sizes, counts and order") {
  const std::string a = shard_with(3, "a");
  const std::string b = shard_with(4, "b");
  const std::uint64_t print = open({a, b})->fingerprint();
  CHECK(open({a, b})->fingerprint() == print);
  CHECK(open({b, a})->fingerprint() != print);
  CHECK(open({a})->fingerprint() != print);
  CHECK(open({a, b, b})->fingerprint() != print);
  std::filesystem::create_directory(folder / "elsewhere");
  CHECK(open({shard_with(3, "elsewhere/a"), b})->fingerprint() == print);
  CHECK(open({shard_with(4, "elsewhere/a"), b})->fingerprint() != print);
  CHECK(open({shard_with(3, "elsewhere/aa"), b})->fingerprint() != print);
}

TEST_CASE_FIXTURE(Fixture, "shard set: damage is raised as a user would need to read it") {
  TestShard shard(folder / "shard");
  const auto damaged = [&](auto damage) {
    shard = TestShard(shard.path());
    shard.write_records(3, 50);
    damage();
    const Error error = error_of([&] { open({shard.path()}); });
    CHECK(error.place().path == shard.path());
    CHECK(holds(error.message(), "'" + shard.path() + "'"));
    CHECK(holds(error.message(),
                "Restore the file, or read its other records with "
                "on_corruption=\"skip\"."));
    CHECK(open({shard.path()}, nullptr, true)->record_count() < 3);
    return error;
  };

  const Error bad = damaged([&] { shard.flip_bit(shard.offset(1) + 8); });
  CHECK(bad.kind() == ErrorKind::corrupt);
  CHECK(bad.place().record == 1);
  CHECK(bad.place().offset == 66);
  // The length 50 and its CRC, which has its lowest bit flipped.
  CHECK(
      holds(bad.message(), "is corrupt: the length of record 1 at byte 66 has masked CRC-32C 0x"));
  CHECK(holds(bad.message(), ", but the file expects 0x"));
  CHECK(holds(bad.message(), "The next good record begins at byte 132."));

  const Error last = damaged([&] { shard.flip_bit(shard.offset(2) + 8); });
  CHECK(holds(last.message(), "record 2 at byte 132"));
  CHECK(holds(last.message(), "No good record follows."));

  const Error header = damaged([&] { shard.truncate_to(shard.offset(2) + 5); });
  CHECK(header.kind() == ErrorKind::truncated);
  CHECK(header.place().offset == 132);
  CHECK(holds(header.message(),
              "is truncated: record 2 at byte 132 should have a header of 12 "
              "bytes, but the file ends after 5."));

  const Error payload_cut = damaged([&] { shard.truncate_to(shard.size() - 1); });
  CHECK(payload_cut.kind() == ErrorKind::truncated);
  CHECK(payload_cut.place().record == 2);
  CHECK(holds(payload_cut.message(),
              "record 2 at byte 132 should have 50 bytes (16 more with its "
              "frame), but the file ends 65 bytes after it begins."));
}

TEST_CASE_FIXTURE(Fixture, "shard set: a few stray bytes are reported with the header they spoil") {
  TestShard shard(folder / "shard");
  shard.write_records(3, 50).insert(shard.offset(1), "abc");
  const Error error = error_of([&] { open({shard.path()}); });
  CHECK(error.place().offset == 66);
  CHECK_FALSE(error.message().find("expects 0x00000000") != std::string::npos);
  CHECK(holds(error.message(), "The next good record begins at byte 69."));
}
