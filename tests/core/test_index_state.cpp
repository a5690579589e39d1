#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/index/folder_writing.h"
#include "core/index/index_state.h"
#include "core/index/opening.h"
#include "core/storage/local/local_facts.h"
#include "core/write/shard_writer.h"
#include "saved_index.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kTick = 4'000'000;
constexpr std::int64_t kNow = 1'700'000'000 * kSecond + 123'456'789;

struct Fixture {
  TemporaryFolder folder;
  AssumedToLast restore;
  TestShard shard{folder / "shard"};
  std::string index_path = folder / "index";

  std::shared_ptr<const ShardIndex> walked(bool settled = true) const {
    const auto file = StoredFile::open(shard.path());
    return index_of(*file, Compression::none, walk_shard(file), settled);
  }
  std::shared_ptr<const ShardIndex> saved(bool settled = true) const {
    save_index(*walked(settled), index_path);
    return load_index(index_path);
  }
  bool fits(const ShardIndex& index) const {
    return index_fits(index, *StoredFile::open(shard.path()));
  }
};

FileFacts changed_at(std::int64_t mtime_ns, std::int64_t ctime_ns, bool lasts) {
  return {300, mtime_ns, {{1, 2, static_cast<std::uint64_t>(ctime_ns)}}, lasts, {}};
}

}  // namespace

TEST_CASE("index state: a walk settles what was modified two seconds ago, or more") {
  const auto settled = [](std::int64_t age_ns, bool lasts) {
    return is_settled(changed_at(kNow - age_ns, kNow - 10 * kSecond, lasts), kNow, kNow - kTick);
  };
  for (const bool lasts : {false, true}) {
    CHECK_FALSE(settled(0, lasts));
    CHECK_FALSE(settled(kTick, lasts));
    CHECK_FALSE(settled(2 * kSecond - 1, lasts));
    CHECK(settled(2 * kSecond, lasts));
    CHECK(settled(1000 * kSecond, lasts));
    CHECK(settled(kNow + 1000 * kSecond, lasts));  // before 1970
  }
  // A time in the future was set by hand, or by a clock that is ahead. Only ctime tells.
  CHECK_FALSE(settled(-1, false));
  CHECK_FALSE(settled(-100 * kSecond, false));
  CHECK(settled(-100 * kSecond, true));
}

TEST_CASE("index state: where ctime counts, the clock must have ticked since") {
  const auto settled = [](std::int64_t ctime_ns, bool lasts) {
    return is_settled(changed_at(kNow - 100 * kSecond, ctime_ns, lasts), kNow, kNow - kTick);
  };
  CHECK(settled(kNow - kTick - 1, true));
  CHECK_FALSE(settled(kNow - kTick, true));
  CHECK_FALSE(settled(kNow, true));
  CHECK_FALSE(settled(kNow + kSecond, true));
  CHECK(settled(kNow, false));
  // A filesystem that keeps whole seconds.
  const std::int64_t whole = kNow / kSecond * kSecond;
  CHECK_FALSE(settled(whole - kSecond, true));
  CHECK(settled(whole - 2 * kSecond, true));
}

TEST_CASE_FIXTURE(Fixture,
                  "index state: waiting for the tick settles a shard of just now, if it is old") {
  for (int i = 0; i < 5; ++i) {
    shard.write_records(1, 10);  // its ctime is of this tick
    CHECK(StoredFile::open(shard.path())->await_settled());
    bool has_settled;
    do {  // again, if the machine took so long that the shard came to rest
      shard.set_mtime_to_now();
      has_settled = StoredFile::open(shard.path())->await_settled();
    } while (!shard.is_recent());
    CHECK_FALSE(has_settled);
  }
}

TEST_CASE_FIXTURE(Fixture,
                  "index state: an index fits as long as everything that counts is as it was") {
  for (const bool lasts : {false, true}) {
    CAPTURE(lasts);
    assume_versions_last(lasts);
    shard = TestShard(folder / "shard").write_records(10, 20);
    const std::int64_t mtime_ns = shard.mtime_ns();
    const auto index = walked();
    CHECK(fits(*index));
    CHECK_FALSE(fits(*walked(false)));
    CHECK((index->facts().version != VersionTag()) == lasts);

    wait_for_another_ctime(shard.path());
    REQUIRE(::chmod(shard.path().c_str(), 0640) == 0);
    CHECK(fits(*index) == !lasts);
    shard.set_mtime_ns(mtime_ns + 1'000'000'000);
    CHECK_FALSE(fits(*index));
    // Another file with the same time.
    shard.replace_with(shard.bytes()).set_mtime_ns(mtime_ns);
    CHECK(fits(*index) == !lasts);
    // If only size and time count, a few headers are compared.
    shard.overwrite(shard.offset(9), frame_of(payload(15)) + "12345").set_mtime_ns(mtime_ns);
    CHECK_FALSE(fits(*index));
    shard.append("x").set_mtime_ns(mtime_ns);
    CHECK_FALSE(fits(*index));
  }
}

TEST_CASE_FIXTURE(Fixture,
                  "index state: an index of a filesystem where identity lasts serves another") {
  shard.write_records(10, 20);
  assume_versions_last(true);
  const auto on_disk = walked();
  assume_versions_last(false);
  const auto on_network = walked();
  CHECK(fits(*on_disk));
  assume_versions_last(true);
  CHECK_FALSE(fits(*on_network));  // the index lacks the samples that count here
}

TEST_CASE_FIXTURE(Fixture, "index state: entries are the same for the same records and damage") {
  shard.write_records(100, 20).append("torn");
  const auto index = saved();
  CHECK(index->has_same_entries(*walked()));
  shard.overwrite(shard.size() - 4, "else");
  CHECK(index->has_same_entries(*walked()));
  for (const std::size_t record : {0, 50, 98}) {
    // Two records that divide their bytes differently.
    TestShard moved(folder / "moved");
    moved.append(shard.bytes());
    moved.overwrite(shard.offset(record), frame_of(payload(21)) + frame_of(payload(19)));
    const auto file = StoredFile::open(moved.path());
    CHECK_FALSE(
        index->has_same_entries(*index_of(*file, Compression::none, walk_shard(file), true)));
  }
  std::string damaged = read_file(index_path);
  damaged.back() ^= 1;  // a zero after the entries
  write_file(index_path, damaged);
  CHECK(error_of([&] { load_index(index_path)->has_same_entries(*walked()); }).kind() ==
        ErrorKind::stale_index);
}

TEST_CASE_FIXTURE(Fixture, "index state: a writer's index follows its shard, and no other file") {
  for (const bool lasts : {false, true}) {
    CAPTURE(lasts);
    assume_versions_last(lasts);
    std::filesystem::create_directory(folder / "made");
    ShardWriter writer(folder / "written", {true, folder / "made", false});
    const std::string record = payload(100);
    writer.write({reinterpret_cast<const std::uint8_t*>(record.data()), record.size()});
    writer.finish();
    writer.publish();
    const auto made = FolderIndex::load(folder / "made/index");
    const auto index = made->open(made->entries().front());
    CHECK(index->facts().settled);
    CHECK(index_fits(*index, *StoredFile::open(folder / "written")));

    wait_for_another_ctime(folder / "written");
    REQUIRE(std::rename((folder / "written").c_str(), (folder / "moved").c_str()) == 0);
    CHECK(index_fits(*index, *StoredFile::open(folder / "moved")) == !lasts);
    const IndexPlace place{folder / "indexes", "moved", 0};
    const auto added = [&](const std::string& name) {
      add_moved_index(*made, name, place, folder / "moved");
      const auto now = FolderIndex::load(folder / "indexes/index");
      return now->open(now->entries().front());
    };
    CHECK(index_fits(*added("written"), *StoredFile::open(folder / "moved")));
    CHECK(error_of([&] { added("another"); }).kind() == ErrorKind::stale_index);

    // Written to after the move.
    const int descriptor = ::open((folder / "moved").c_str(), O_WRONLY);
    REQUIRE(::pwrite(descriptor, "x", 1, 20) == 1);
    ::close(descriptor);
    CHECK_FALSE(added("written")->facts().settled);

    // An index that a walk has made.
    shard = TestShard(folder / "shard").write_records(10, 20);
    CHECK_FALSE(facts_when_published(saved(false)->facts(), shard.path()).settled);
    std::filesystem::remove(folder / "moved");
    CHECK(error_of([&] { added("written"); }).kind() == ErrorKind::io);
    std::filesystem::remove_all(folder / "made");
  }
}
