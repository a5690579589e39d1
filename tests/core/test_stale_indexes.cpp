// Shards change by every route, and have indexes of their earlier state. Readers return the right
// records, and walk only if no fact reveals the change.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <map>

#include "core/index/folder_writing.h"
#include "core/index/index_places.h"
#include "core/index/index_state.h"
#include "core/index/opening.h"
#include "core/index/walked_shard.h"
#include "core/storage/local/local_facts.h"
#include "core/storage/local/published_file.h"
#include "core/storage/storage.h"
#include "core/write/shard_writer.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

// More records than a walk finds in one step, so that the progress shows whether a walk happened.
constexpr std::size_t kRecords = 9000;
constexpr std::size_t kBytes = 20;

enum class Place { cache, sibling, folder };

struct Fixture {
  TemporaryFolder folder;
  Environment cache{"TFRFAST_CACHE_DIR", folder / "cache"};
  AssumedToLast restore;
  std::string data = (std::filesystem::create_directory(folder / "data"), folder / "data");
  std::string path = data + "/shard";

  IndexOptions options(Place place, IndexUse use = IndexUse::automatic) const {
    return {use, place == Place::folder ? folder / "indexes" : "", {}};
  }
  void build(Place place) const {
    if (place == Place::cache) open_indexed(path, IoMode::mapped, {});
    if (place == Place::sibling) build_index(path, "", false);
    if (place == Place::folder) build_index(path, folder / "indexes", false);
  }
};

struct Opened {
  IndexedShard shard;
  bool walked = false;
};

Opened open(const std::string& path, const IndexOptions& options = {}) {
  int steps = 0;
  IndexedShard shard =
      open_indexed(path, IoMode::mapped, options, [&steps](std::uint64_t) { ++steps; });
  return {std::move(shard), steps > 1};
}

std::vector<std::uint64_t> offsets_of(const std::string& path) {
  return open_indexed(path, IoMode::mapped, {IndexUse::memory, "", {}})
      .index->copy_packed()
      .unpack();
}

// Returns as many bytes as the shard of write_records(kRecords, kBytes) has, to replace that shard.
std::string other_bytes(const std::string& folder, const std::string& kind) {
  TestShard other(folder + "/other");
  if (kind == "same boundaries") {
    std::string bytes;
    for (unsigned i = 0; i < kRecords; ++i) bytes += frame_of(payload(kBytes, 100'000 + i));
    return bytes;
  }
  other.write_records(5001, kBytes);
  if (kind == "other boundaries") {
    // The changed record lies between the headers that every index is compared with.
    other.write_record(payload(kBytes - 7)).write_record(payload(kBytes + 7));
  } else {
    other.write_record(payload(2 * kBytes + kFrameOverhead));  // one record less
  }
  other.write_records(kRecords - 5003, kBytes);
  return other.bytes();
}

WriteOptions writing(bool durable, Compression compression = Compression::none) {
  WriteOptions options;
  options.durable = durable;
  options.compression = compression;
  return options;
}

void overwrite(const std::string& path, const std::string& bytes) {
  const int descriptor = ::open(path.c_str(), O_WRONLY);
  REQUIRE(descriptor >= 0);
  REQUIRE(::pwrite(descriptor, bytes.data(), bytes.size(), 0) == std::ssize(bytes));
  ::close(descriptor);
}

using Route = std::function<void(const std::string& path, const std::string& bytes)>;
const std::map<std::string, Route> kRoutes = {
    {"rewritten in place", overwrite},
    {"truncated and grown",
     [](const std::string& path, const std::string& bytes) { write_file(path, bytes); }},
    {"renamed over",
     [](const std::string& path, const std::string& bytes) {
       write_file(path + ".new", bytes);
       REQUIRE(std::rename((path + ".new").c_str(), path.c_str()) == 0);
     }},
    {"linked in place",
     [](const std::string& path, const std::string& bytes) {
       write_file(path + ".new", bytes);
       std::filesystem::remove(path);
       std::filesystem::create_hard_link(path + ".new", path);
     }},
    {"pointed elsewhere",
     [](const std::string& path, const std::string& bytes) {
       write_file(path + ".new", bytes);
       std::filesystem::remove(path);
       std::filesystem::create_symlink(path + ".new", path);
     }},
};

void set_mtime_ns(const std::string& path, std::int64_t mtime_ns) {
  const timespec time = {static_cast<time_t>(mtime_ns / 1'000'000'000),
                         static_cast<long>(mtime_ns % 1'000'000'000)};
  const timespec times[2] = {time, time};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

}  // namespace

TEST_CASE_FIXTURE(Fixture,
                  "stale indexes: whatever a shard becomes, by whatever route, is noticed") {
  for (const auto& [called, route] : kRoutes) {
    const std::string& name = called;  // older clangs capture no binding
    for (const std::string kind : {"same boundaries", "other boundaries", "a record less"}) {
      for (const Place place : {Place::cache, Place::sibling, Place::folder}) {
        for (const bool lasts : {true, false}) {
          for (const bool keeps_mtime : {true, false}) {
            CAPTURE(name);
            CAPTURE(kind);
            CAPTURE(place);
            CAPTURE(lasts);
            CAPTURE(keeps_mtime);
            for (const char* each : {"data", "data.tfrfast", "indexes", "cache"}) {
              std::filesystem::remove_all(folder / each);
            }
            std::filesystem::create_directory(data);
            assume_versions_last(lasts);
            TestShard shard(path);
            shard.write_records(kRecords, kBytes);
            const std::int64_t mtime_ns = shard.mtime_ns();
            const std::string bytes = other_bytes(folder.path(), kind);
            REQUIRE(bytes.size() == shard.size());
            build(place);
            CHECK_FALSE(open(path, options(place)).walked);

            route(path, bytes);
            set_mtime_ns(path, keeps_mtime ? mtime_ns : mtime_ns + 1);
            // no fact reveals the change, as docs/index-format.md says
            if (!lasts && keeps_mtime) continue;
            // The cache identifies a file by its resolved path.
            const bool has_old = place != Place::cache || name != "pointed elsewhere";
            const bool is_same = kind == "same boundaries" && has_old;
            const IndexOptions proven = options(place, IndexUse::proven);
            CHECK(error_of([&] { open(path, proven); }).kind() == ErrorKind::stale_index);
            if (place != Place::folder) {
              const IndexOptions require = options(place, IndexUse::require);
              if (is_same) {
                CHECK(open(path, require).walked);
                CHECK_FALSE(open(path, require).walked);
                CHECK_FALSE(open(path, proven).walked);
              } else {
                CHECK(holds(error_of([&] { open(path, require); }).message(),
                            has_old ? "another state of '" + path + "'" : "has no index"));
              }
            }
            const Opened first = open(path, options(place));
            CHECK(first.walked == (place == Place::folder || !is_same));
            CHECK(first.shard.was_built == first.walked);
            CHECK(first.shard.index->copy_packed().unpack() == offsets_of(path));
            const Opened second = open(path, options(place));
            CHECK_FALSE(second.walked);
            CHECK(second.shard.index->copy_packed().unpack() == offsets_of(path));
          }
        }
      }
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "stale indexes: a shard that was copied with its index is walked once") {
  TestShard shard(path);
  shard.write_records(kRecords, kBytes);
  for (const Place place : {Place::sibling, Place::folder}) {
    build(place);
    // Like `cp -r` and most downloads: other times and another identity.
    shard.replace_with(shard.bytes()).set_mtime_ns(shard.mtime_ns() + 77);
    CHECK(open(path, options(place)).walked);
    for (int times = 0; times < 3; ++times) {
      const Opened again = open(path, options(place));
      CHECK_FALSE(again.walked);
      CHECK_FALSE(again.shard.was_built);
      CHECK(again.shard.index_path == cached_index_path(path));
    }
    // A built index serves all users, so building does not rely on one user's cache.
    CHECK(build_index(path, place == Place::folder ? folder / "indexes" : "", false).was_built);
    std::filesystem::remove_all(folder / "cache");
    CHECK_FALSE(open(path, options(place)).walked);
  }
}

TEST_CASE_FIXTURE(Fixture, "stale indexes: without a cache each opening walks again") {
  TestShard shard(path);
  shard.write_records(kRecords, kBytes);
  build(Place::sibling);
  write_file(folder / "cache", "a file where the folder should be");
  shard.set_mtime_ns(shard.mtime_ns() + 77);
  for (int times = 0; times < 2; ++times) {
    const Opened opened = open(path, options(Place::sibling, IndexUse::require));
    CHECK(opened.walked);
    CHECK(opened.shard.index->record_count() == kRecords);
  }
}

TEST_CASE_FIXTURE(Fixture,
                  "stale indexes: a shard that was just written is walked until it rests") {
  TestShard shard(path);
  shard.write_records(kRecords, kBytes);
  const auto is_stale = [this](Place place) {
    try {
      open(path, options(place, IndexUse::proven));
      return false;
    } catch (const Error& error) {
      return error.kind() == ErrorKind::stale_index;
    }
  };
  for (const Place place : {Place::cache, Place::sibling, Place::folder}) {
    bool was_walked, was_stale;
    do {  // again, if the machine took so long that the shard came to rest
      shard.set_mtime_to_now();
      build(place);
      was_walked = open(path, options(place)).walked;
      was_stale = is_stale(place);
    } while (!shard.is_recent());
    CHECK(was_walked);
    CHECK(was_stale);
  }
  shard.set_mtime_ns(shard.mtime_ns() - kRecentNs);
  for (const Place place : {Place::cache, Place::folder}) {
    std::filesystem::remove_all(folder / "cache");
    CHECK(open(path, options(place)).walked);
    CHECK_FALSE(open(path, options(place)).walked);
  }
}

TEST_CASE_FIXTURE(Fixture,
                  "stale indexes: a damaged shard that was copied is walked once, like any other") {
  TestShard shard(path);
  shard.write_records(kRecords, kBytes).flip_bit(shard.offset(100) + 9).append("torn");
  for (const Place place : {Place::sibling, Place::folder}) {
    build(place);
    shard.set_mtime_ns(shard.mtime_ns() + 77);
    CHECK(open(path, options(place)).walked);
    CHECK_FALSE(open(path, options(place)).walked);
    CHECK(open(path, options(place)).shard.index->damage().size() == 2);
    // The repaired shard is another shard.
    shard.flip_bit(shard.offset(100) + 9);
    CHECK(open(path, options(place)).shard.was_built);
    CHECK(open(path, options(place)).shard.index->damage().size() == 1);
    shard.flip_bit(shard.offset(100) + 9);
    for (const char* each : {"data.tfrfast", "indexes", "cache"}) {
      std::filesystem::remove_all(folder / each);
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "stale indexes: a stream never waits for an index, and leaves one") {
  TestShard shard(path);
  shard.write_records(kRecords, kBytes);
  build(Place::sibling);
  CHECK(WalkedShard(path, IoMode::mapped, {}).index() != nullptr);
  shard.set_mtime_ns(shard.mtime_ns() + 77);
  const auto pass_all = [](WalkedShard& walk) {
    const std::uint64_t all = std::numeric_limits<std::uint64_t>::max();
    ShardPlace place;
    for (;;) {
      const WalkedShard::PassedFrames stretch = walk.pass(place, all, all);
      if (stretch.is_end) return place.number;
      place = stretch.next;
    }
  };
  {
    WalkedShard walk(path, IoMode::mapped, {});
    CHECK(walk.index() == nullptr);
    CHECK(walk.pass({}, 10, 1000).next.number == 10);
    CHECK(walk.index() == nullptr);
    // A walk that begins in the middle finds no index.
    CHECK(WalkedShard(path, IoMode::mapped, {}).pass({shard.offset(5), 5}, 2, 1000).next.byte ==
          shard.offset(7));
    CHECK(pass_all(walk) == kRecords);
    CHECK(walk.index() != nullptr);
  }
  const WalkedShard again(path, IoMode::mapped, {});
  REQUIRE(again.index() != nullptr);
  CHECK(again.index()->origin() == cached_index_path(path));
  CHECK_FALSE(open(path, options(Place::sibling, IndexUse::proven)).walked);

  // Another state: the walk's index is kept beside the index that does not fit.
  shard.replace_with(other_bytes(folder.path(), "a record less"));
  {
    WalkedShard walk(path, IoMode::mapped, {});
    CHECK(walk.index() == nullptr);
    CHECK(pass_all(walk) == kRecords - 1);
  }
  const WalkedShard other(path, IoMode::mapped, {});
  REQUIRE(other.index() != nullptr);
  CHECK(other.index()->origin() == cached_index_path(path));
  CHECK(other.index()->record_count() == kRecords - 1);
}

TEST_CASE_FIXTURE(Fixture,
                  "stale indexes: compressed shards are inflated once, and not where stamped") {
  const auto write = [&](unsigned seed) {
    ShardWriter writer(path, writing(false, Compression::gzip));
    for (unsigned i = 0; i < 300; ++i) {
      const std::string record = payload(20'000, seed + i);
      writer.write({reinterpret_cast<const std::uint8_t*>(record.data()), record.size()});
      // The writer ends members where no walk would begin a span.
      if (i % 70 == 0) writer.drop_buffer();
    }
    writer.finish();
    writer.publish();
  };
  for (const bool lasts : {true, false}) {
    CAPTURE(lasts);
    assume_versions_last(lasts);
    std::filesystem::remove_all(folder / "cache");
    write(0);
    const IndexOptions require = options(Place::sibling, IndexUse::require);
    CHECK_FALSE(open(path, require).walked);
    // Copied without its time.
    const std::string bytes = read_file(path);
    write_file(path + ".new", bytes);
    REQUIRE(std::rename((path + ".new").c_str(), path.c_str()) == 0);
    set_mtime_ns(path, examine_file(path).mtime_ns - 5 * kRecentNs);
    CHECK(open(path, require).walked);
    CHECK_FALSE(open(path, require).walked);
    CHECK(open(path, require).shard.index_path == cached_index_path(path));

    std::string damaged = bytes;
    damaged[damaged.size() / 2] ^= 1;
    overwrite(path, damaged);
    set_mtime_ns(path, examine_file(path).mtime_ns - 5 * kRecentNs);
    CHECK(error_of([&] { open(path, require); }).kind() == ErrorKind::stale_index);
    const Opened built = open(path);
    CHECK(built.shard.was_built);
    CHECK_FALSE(built.shard.index->damage().empty());
    CHECK_FALSE(open(path).walked);

    write(1000);  // overwrites the shard
    CHECK_FALSE(open(path, require).walked);
  }
}

TEST_CASE_FIXTURE(Fixture, "stale indexes: what a writer publishes is found without a walk") {
  for (const bool lasts : {true, false}) {
    for (const bool durable : {true, false}) {
      assume_versions_last(lasts);
      ShardWriter writer(path, writing(durable));
      for (unsigned i = 0; i < kRecords; ++i) {
        writer.write({reinterpret_cast<const std::uint8_t*>("record"), 6});
      }
      writer.finish();
      CHECK(FolderIndex::load(data + ".tfrfast/index") == nullptr);
      writer.publish();
      CHECK_FALSE(open(path, options(Place::sibling, IndexUse::proven)).walked);
      // At once, in the same tick of the clock: the file cannot get its old time again.
      overwrite(path, frame_of("another record"));
      CHECK(open(path).walked);
      CHECK(open(path).shard.index->frame(0).payload_bytes == 14);
      std::filesystem::remove_all(data + ".tfrfast");
      std::filesystem::remove(path);
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "stale indexes: an index that is not settled costs one walk") {
  ShardWriter writer(path, writing(false));
  for (unsigned i = 0; i < kRecords; ++i) {
    writer.write({reinterpret_cast<const std::uint8_t*>("record"), 6});
  }
  writer.finish();
  writer.publish();
  const auto index = open(path).shard.index;
  ShardFacts facts = index->facts();
  facts.settled = false;
  keep_index(sibling_place(path), ShardIndex(facts, index->copy_packed().unpack(), {}));
  const IndexOptions require = options(Place::sibling, IndexUse::require);
  CHECK(open(path, require).walked);
  set_mtime_ns(path, facts.mtime_ns - 5 * kRecentNs);
  CHECK(open(path, require).walked);
  CHECK_FALSE(open(path, require).walked);
}

TEST_CASE_FIXTURE(Fixture,
                  "stale indexes: those of older versions are built again without a word") {
  TestShard shard(path);
  shard.write_records(kRecords, kBytes);
  build(Place::sibling);
  const std::string sibling = data + ".tfrfast/index";
  for (const char version : {'\0', '\1'}) {
    std::string old = read_file(sibling);
    old[8] = version;
    write_file(sibling, old);
    const Error error = error_of([&] { open(path, options(Place::sibling, IndexUse::require)); });
    CHECK(error.kind() == ErrorKind::stale_index);
    CHECK(holds(error.message(), "has version " + std::to_string(version)));
    CHECK(open(path).shard.was_built);
    std::filesystem::remove_all(folder / "cache");
    CHECK(build_index(path, "", false).was_built);
    CHECK_FALSE(open(path, options(Place::sibling, IndexUse::require)).walked);
  }
}
