#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "core/base/publish.h"
#include "core/index/index_file.h"
#include "core/index/index_store.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

struct Fixture {
  TemporaryFolder folder;
  Environment cache{"TFRFAST_CACHE_DIR", folder / "cache"};
  std::string data = (std::filesystem::create_directory(folder / "data"), folder / "data");
  TestShard shard{data + "/train-0"};

  IndexedShard open(IoMode io = IoMode::mapped, const IndexOptions& options = {}) const {
    return open_indexed(shard.path(), io, options);
  }
  bool finds_index(const IndexOptions& options = {}) const {
    return !open(IoMode::mapped, options).was_built;
  }
};

std::size_t files_in(const std::string& folder) {
  if (!std::filesystem::exists(folder)) return 0;
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    count += entry.is_regular_file();
  }
  return count;
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "index store: where indexes lie") {
  CHECK(sibling_index_path("/data/imagenet/train-0") == "/data/imagenet.tfrfast/train-0.index");
  CHECK(sibling_index_path("imagenet/train-0") == "imagenet.tfrfast/train-0.index");
  CHECK(sibling_index_path("/imagenet//train-0") == "/imagenet.tfrfast/train-0.index");
  CHECK(sibling_index_path("/train-0") == "/.tfrfast/train-0.index");
  CHECK(index_path_in("somewhere", "/data/train-0") == "somewhere/train-0.index");
  CHECK(index_cache_folder() == folder / "cache/index");
  CHECK(folder_of(cached_index_path(shard.path())) == folder / "cache/index");

  const std::string here = std::filesystem::current_path().string();
  CHECK(sibling_index_path("train-0") == here + ".tfrfast/train-0.index");
  CHECK(sibling_index_path("./train-0") == here + ".tfrfast/train-0.index");
  CHECK(sibling_index_path("../train-0") == folder_of(here) + ".tfrfast/train-0.index");
}

TEST_CASE_FIXTURE(Fixture, "index store: one link and another share a cached index, files do not") {
  std::filesystem::create_symlink(shard.path(), folder / "link");
  std::filesystem::create_directory_symlink(data, folder / "linked");
  CHECK(cached_index_path(folder / "link") == cached_index_path(shard.path()));
  CHECK(cached_index_path(folder / "linked/train-0") == cached_index_path(shard.path()));
  CHECK(cached_index_path(data + "/../data/train-0") == cached_index_path(shard.path()));
  TestShard other(data + "/train-1");
  CHECK(cached_index_path(other.path()) != cached_index_path(shard.path()));
  const std::string long_name(250, 'n');
  CHECK(name_of(cached_index_path(data + "/" + long_name)).size() < 200);
}

TEST_CASE_FIXTURE(Fixture, "index store: the first opening builds, the second finds") {
  shard.write_records(100, 20);
  FOR_EACH_IO(io) {
    std::filesystem::remove_all(folder / "cache");
    CHECK(open(io).was_built);
    CHECK_FALSE(open(io).was_built);
    CHECK(open(io).index->origin() == cached_index_path(shard.path()));
  }
  CHECK(files_in(data) == 1);
  CHECK_FALSE(std::filesystem::exists(data + ".tfrfast"));
}

TEST_CASE_FIXTURE(Fixture, "index store: in memory keeps nothing and looks for nothing") {
  shard.write_records(100, 20);
  CHECK_FALSE(finds_index({IndexUse::memory, "", {}}));
  CHECK_FALSE(finds_index({IndexUse::memory, "", {}}));
  CHECK_FALSE(std::filesystem::exists(folder / "cache"));
}

TEST_CASE_FIXTURE(Fixture, "index store: the sibling folder goes before the cache") {
  shard.write_records(100, 20);
  open();
  build_index(shard.path(), "", false);
  CHECK(open().index->origin() == data + ".tfrfast/train-0.index");
  CHECK(files_in(data) == 1);
}

TEST_CASE_FIXTURE(Fixture, "index store: a folder that is named is the only place") {
  shard.write_records(100, 20);
  build_index(shard.path(), "", false);
  const IndexOptions options{IndexUse::automatic, folder / "chosen/indexes", {}};
  CHECK_FALSE(finds_index(options));
  CHECK(finds_index(options));
  CHECK(open(IoMode::mapped, options).index->origin() == folder / "chosen/indexes/train-0.index");
  CHECK(files_in(folder / "cache") == 0);
}

TEST_CASE_FIXTURE(Fixture, "index store: require says where it looked and what to do") {
  shard.write_records(100, 20);
  const IndexOptions require{IndexUse::require, "", {}};
  const Error missing = error_of([&] { open(IoMode::mapped, require); });
  CHECK(missing.kind() == ErrorKind::stale_index);
  CHECK(missing.place().path == shard.path());
  CHECK(holds(missing.message(), "'" + shard.path() + "' has no index"));
  CHECK(holds(missing.message(), sibling_index_path(shard.path())));
  CHECK(holds(missing.message(), cached_index_path(shard.path())));
  CHECK(holds(missing.message(), "`tfrfast index " + shard.path() + "`"));

  build_index(shard.path(), "", false);
  CHECK(finds_index(require));
  shard.write_record("one more");
  const Error stale = error_of([&] { open(IoMode::mapped, require); });
  CHECK(stale.kind() == ErrorKind::stale_index);
  CHECK(holds(stale.message(), "another state of '" + shard.path() + "'"));
  CHECK(holds(stale.message(), "3600 bytes then, 3624 now"));
}

TEST_CASE_FIXTURE(Fixture,
                  "index store: an index that is damaged or of another version is replaced") {
  shard.write_records(100, 20);
  open();
  const std::string path = cached_index_path(shard.path());
  const std::string good = read_file(path);
  for (const std::size_t at : {std::size_t{0}, std::size_t{8}, std::size_t{130}, good.size() - 1}) {
    std::string bad = good;
    bad[at] ^= 0x40;
    write_file(path, bad);
    CHECK_FALSE(finds_index());
    CHECK(finds_index());
  }
  write_file(path, "");
  CHECK_FALSE(finds_index());
}

TEST_CASE_FIXTURE(Fixture, "index store: a shard that grew or shrank is indexed again") {
  shard.write_records(100, 20);
  open();
  shard.write_record("grown");
  CHECK_FALSE(finds_index());
  CHECK(open().index->record_count() == 101);
  shard.truncate_to(shard.offset(50));
  CHECK_FALSE(finds_index());
  CHECK(open().index->record_count() == 50);
}

TEST_CASE_FIXTURE(Fixture, "index store: one as large, with other records, is indexed again") {
  shard.write_records(100, 20);
  TestShard other(folder / "other");
  other.write_record(payload(10)).write_records(98, 20).write_record(payload(30));
  REQUIRE(other.size() == shard.size());
  open();
  const std::int64_t mtime_ns = shard.mtime_ns();
  for (const bool set_back : {false, true}) {
    open();
    shard.replace_with(shard.bytes() == other.bytes()
                           ? TestShard(folder / "x").write_records(100, 20).bytes()
                           : other.bytes());
    if (set_back) shard.set_mtime_ns(mtime_ns);
    CHECK_FALSE(finds_index());
  }
}

TEST_CASE_FIXTURE(Fixture, "index store: a touched shard keeps its index") {
  shard.write_records(100, 20);
  open();
  shard.set_mtime_ns(shard.mtime_ns() + 5'000'000'000);
  CHECK(finds_index());
}

TEST_CASE_FIXTURE(Fixture, "index store: a touched shard with damage is looked at again") {
  shard.write_records(100, 20).append("torn");
  CHECK(open().index->damage().size() == 1);
  CHECK(finds_index());
  shard.overwrite(shard.size() - 4, "more");
  shard.set_mtime_ns(shard.mtime_ns() + 5'000'000'000);
  CHECK_FALSE(finds_index());
}

TEST_CASE_FIXTURE(Fixture,
                  "index store: an empty shard, and one with nothing good, are remembered") {
  CHECK_FALSE(finds_index());
  CHECK(finds_index());
  shard.append("no TFRecord at all, but long enough for a header");
  CHECK_FALSE(finds_index());
  CHECK(finds_index());
  CHECK(open().index->record_count() == 0);
}

TEST_CASE_FIXTURE(Fixture, "index store: a cache that cannot be written is no error") {
  shard.write_records(100, 20);
  write_file(folder / "cache", "a file where the folder should be");
  CHECK_FALSE(finds_index());
  CHECK_FALSE(finds_index());
  // Full, too.
  CHECK(run_in_child([&] {
          std::filesystem::remove(folder / "cache");
          ::signal(SIGXFSZ, SIG_IGN);
          const rlimit small = {100, 100};
          ::setrlimit(RLIMIT_FSIZE, &small);
          return open().index->record_count() == 100 ? 0 : 1;
        }) == 0);
  CHECK(files_in(folder / "cache") == 0);
}

TEST_CASE_FIXTURE(Fixture, "index store: a named folder that cannot be written is an error") {
  shard.write_records(10, 20);
  write_file(folder / "taken", "");
  const Error error =
      error_of([&] { open(IoMode::mapped, {IndexUse::automatic, folder / "taken/in", {}}); });
  CHECK(error.kind() == ErrorKind::io);
  CHECK(holds(error.message(), "taken"));
}

TEST_CASE_FIXTURE(Fixture,
                  "index store: threads and processes build one index at a time that fits") {
  shard.write_records(5000, 20);
  const auto build_often = [&] {
    for (int round = 0; round < 10; ++round) {
      const IndexedShard built = build_index(shard.path(), "", round % 2 == 0);
      if (built.index->record_count() != 5000 || built.index->frame(4999).payload_bytes != 20) {
        return 1;
      }
    }
    return 0;
  };
  std::atomic<int> failures{0};
  std::vector<pid_t> children;  // forked before there are threads that allocate
  for (int i = 0; i < 2; ++i) children.push_back(start_child(build_often));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { failures += build_often(); });
  for (const pid_t child : children) CHECK(status_of(child) == 0);
  for (std::thread& thread : threads) thread.join();
  CHECK(failures == 0);
  CHECK(files_in(data + ".tfrfast") == 1);
  CHECK(finds_index());
}

TEST_CASE_FIXTURE(Fixture, "index store: what a killed builder leaves does not disturb") {
  shard.write_records(5000, 20);
  std::filesystem::create_directories(data + ".tfrfast");
  write_file(data + ".tfrfast/.tmp-1-0-12345", "half an index");
  make_folders(folder / "cache/index");
  write_file(folder / "cache/index/.tmp-1-0-12345", "half an index");
  CHECK_FALSE(finds_index());
  CHECK(finds_index());
  CHECK(prune_index_cache(0) == 2);
}

TEST_CASE_FIXTURE(Fixture, "index store: building keeps an index that fits, unless forced") {
  shard.write_records(100, 20);
  const std::string indexes = folder / "indexes";
  CHECK(build_index(shard.path(), indexes, false).was_built);
  CHECK_FALSE(build_index(shard.path(), indexes, false).was_built);
  CHECK(build_index(shard.path(), indexes, true).was_built);
  CHECK(files_in(indexes) == 1);
}

TEST_CASE_FIXTURE(Fixture, "index store: shards of one name share a folder of indexes") {
  const std::string indexes = folder / "indexes";
  std::filesystem::create_directory(folder / "other");
  TestShard other(folder / "other/train-0");
  shard.write_records(100, 20);
  other.write_records(50, 30);
  const std::string plain = index_path_in(indexes, shard.path());
  CHECK(build_index(shard.path(), indexes, false).index_path == plain);
  const std::string second = second_index_path_in(indexes, other.path());
  CHECK(build_index(other.path(), indexes, false).index_path == second);
  for (const bool force : {false, true}) {
    const IndexedShard first_again = build_index(shard.path(), indexes, force);
    CHECK(first_again.was_built == force);
    CHECK(first_again.index_path == plain);
    const IndexedShard other_again = build_index(other.path(), indexes, force);
    CHECK(other_again.was_built == force);
    CHECK(other_again.index_path == second);
  }
  const IndexOptions options{IndexUse::automatic, indexes, {}};
  CHECK(open_indexed(shard.path(), IoMode::automatic, options).index_path == plain);
  CHECK(open_indexed(other.path(), IoMode::automatic, options).index_path == second);
  CHECK(files_in(indexes) == 2);

  // What is no index at all has no claim to the name.
  write_file(plain, "nonsense");
  CHECK(build_index(shard.path(), indexes, false).index_path == plain);
  // A shard that changed takes its other name, and stays there.
  for (int change = 0; change < 2; ++change) {
    shard.write_record("more");
    const IndexedShard changed = build_index(shard.path(), indexes, false);
    CHECK(changed.was_built);
    CHECK(changed.index_path == second_index_path_in(indexes, shard.path()));
  }
  CHECK(files_in(indexes) == 3);
}

TEST_CASE_FIXTURE(Fixture, "index store: the cache is pruned from the least recently used on") {
  for (int i = 0; i < 5; ++i) {
    TestShard each(data + "/part-" + std::to_string(i));
    each.write_records(100, 20);
    open_indexed(each.path(), IoMode::mapped, {});
    const std::string path = cached_index_path(each.path());
    const timespec time = {1'600'000'000 + 1000 * ((i + 2) % 5), 0};
    const timespec times[2] = {time, time};
    REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
  }
  const auto cached = list_index_cache();
  REQUIRE(cached.size() == 5);
  CHECK(cached[0].path == cached_index_path(data + "/part-3"));
  CHECK(cached[4].path == cached_index_path(data + "/part-2"));
  CHECK(prune_index_cache(3 * cached[0].bytes) == 2);
  CHECK(list_index_cache().size() == 3);
  CHECK(list_index_cache()[0].path == cached_index_path(data + "/part-0"));
  CHECK(prune_index_cache(0) == 3);
  CHECK(prune_index_cache(0) == 0);
}

TEST_CASE_FIXTURE(Fixture, "index store: the cache's limit is a number of bytes, or the default") {
  const Environment limit("TFRFAST_CACHE_BYTES", "12345");
  CHECK(index_cache_limit_bytes() == 12345);
  const Environment nonsense("TFRFAST_CACHE_BYTES", "much");
  CHECK(index_cache_limit_bytes() == std::uint64_t{4} << 30);
}

TEST_CASE_FIXTURE(Fixture, "index store: what only begins like a compressed shard is corrupt") {
  shard.append("\x1f\x8b\x08 and so on");
  FOR_EACH_IO(io) {
    const IndexedShard opened = open(io, {IndexUse::memory, "", {}});
    REQUIRE(opened.index->damage().size() == 1);
    CHECK(opened.index->damage()[0].kind == DamageKind::bad_stream);
    CHECK(opened.index->record_count() == 0);
  }
  // Read as plain all the same, it is corrupt in another way.
  CHECK(open(IoMode::mapped, {IndexUse::memory, "", Compression::none}).index->damage()[0].kind ==
        DamageKind::bad_header);
}

TEST_CASE_FIXTURE(Fixture,
                  "index store: insisting on a compression that is not there is an error") {
  shard.write_records(10, 20);
  for (const bool indexed : {false, true}) {
    if (indexed) open();
    const Error error =
        error_of([&] { open(IoMode::mapped, {IndexUse::automatic, "", Compression::zlib}); });
    CHECK(error.kind() == ErrorKind::invalid);
    CHECK(holds(error.message(), "does not begin like a ZLIB-compressed file"));
  }
}
