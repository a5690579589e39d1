#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/warnings.h"
#include "core/index/index_cache.h"
#include "core/index/index_places.h"
#include "core/index/opening.h"
#include "core/storage/local/folders.h"
#include "failing_calls.h"
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

}  // namespace

TEST_CASE_FIXTURE(Fixture, "index store: where indexes are") {
  CHECK(sibling_index_folder("/data/imagenet/train-0") == "/data/imagenet.tfrfast");
  CHECK(sibling_index_folder("imagenet/train-0") == "imagenet.tfrfast");
  CHECK(sibling_index_folder("/imagenet//train-0") == "/imagenet.tfrfast");
  CHECK(sibling_index_folder("/train-0") == "/.tfrfast");
  CHECK(own_index_path("somewhere") == "somewhere/index");
  CHECK(place_in("somewhere", "/data/train-0").name == "train-0");
  CHECK(place_in(folder / "data.tfrfast", shard.path()).data == 0);
  CHECK(place_in(folder / "other.tfrfast", shard.path()).data != 0);
  CHECK(index_cache_folder() == folder / "cache/index");
  const std::string in_cache = folder_of(cached_index_path(shard.path()));
  CHECK(folder_of(in_cache) == folder / "cache/index");
  CHECK(name_of(in_cache).substr(16) == "-data");

  const std::string here = std::filesystem::current_path().string();
  CHECK(sibling_index_folder("train-0") == here + ".tfrfast");
  CHECK(sibling_index_folder("./train-0") == here + ".tfrfast");
  CHECK(sibling_index_folder("../train-0") == folder_of(here) + ".tfrfast");
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

TEST_CASE_FIXTURE(Fixture,
                  "index store: what belongs to a stranger is passed over, with a warning") {
  shard.write_records(100, 20);
  build_index(shard.path(), "", false);
  const std::string sibling = data + ".tfrfast/index";
  const IndexOptions require{IndexUse::require, "", {}};
  take_warnings();
  CHECK(finds_index(require));
  for (const unsigned harmless : {0u, static_cast<unsigned>(::geteuid())}) {
    const PretendedOwner root(sibling, harmless);
    CHECK(finds_index(require));
  }
  {
    const PretendedOwner stranger(sibling, 54321);
    const Error error = error_of([&] { open(IoMode::mapped, require); });
    CHECK(error.kind() == ErrorKind::stale_index);
    CHECK(holds(error.message(), "'" + sibling + "' is ignored: it belongs to user 54321"));
    CHECK(open().was_built);
    CHECK(open().index_path == cached_index_path(shard.path()));
    const std::vector<std::string> warnings = take_warnings();
    REQUIRE(warnings.size() == 1);  // although the index was found three times
    CHECK(holds(warnings[0], "'" + sibling + "' is ignored: it belongs to user 54321"));
    CHECK(holds(warnings[0], "owner of '" + shard.path() + "'"));
  }
  {
    // The owner of the data can change the data anyway.
    const PretendedOwner data_owner(shard.path(), 54321);
    CHECK(open().index_path == sibling);
  }
  CHECK(take_warnings().empty());
}

TEST_CASE_FIXTURE(Fixture, "index store: without a home there is no cache, not even in /tmp") {
  shard.write_records(100, 20);
  CHECK(run_in_child([&] {
          ::unsetenv("TFRFAST_CACHE_DIR");
          ::unsetenv("XDG_CACHE_HOME");
          ::unsetenv("HOME");
          const FailingCall nobody("getpwuid_r", 0, ENOENT);
          if (!index_cache_folder().empty() || !cached_index_path("x").empty()) return 1;
          if (!list_index_cache().empty() || prune_index_cache(0, FreshIndexes::remove) != 0)
            return 2;
          return open_indexed(shard.path(), IoMode::mapped, {}).was_built ? 0 : 3;
        }) == 0);
}

TEST_CASE_FIXTURE(Fixture, "index store: the cache is pruned from the least recently used on") {
  for (int i = 0; i < 5; ++i) {
    std::filesystem::create_directory(data + std::to_string(i));
    TestShard each(data + std::to_string(i) + "/shard");
    each.write_records(100, 20);
    open_indexed(each.path(), IoMode::mapped, {});
    const std::string path = cached_index_path(each.path());
    const timespec time = {1'600'000'000 + 1000 * ((i + 2) % 5), 0};
    const timespec times[2] = {time, time};
    REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
  }
  const auto cached = list_index_cache();
  REQUIRE(cached.size() == 5);
  CHECK(cached[0].path == cached_index_path(data + "3/shard"));
  CHECK(cached[4].path == cached_index_path(data + "2/shard"));
  CHECK(prune_index_cache(3 * cached[0].bytes, FreshIndexes::keep) == 2);
  CHECK(list_index_cache().size() == 3);
  CHECK(list_index_cache()[0].path == cached_index_path(data + "0/shard"));
  CHECK(prune_index_cache(0, FreshIndexes::keep) == 3);
  CHECK(prune_index_cache(0, FreshIndexes::keep) == 0);
}

TEST_CASE_FIXTURE(Fixture, "index store: what is just built stays, unless all is to go") {
  shard.write_records(100, 20);
  open_indexed(shard.path(), IoMode::mapped, {});
  const std::string path = cached_index_path(shard.path());
  CHECK(prune_index_cache(0, FreshIndexes::keep) == 0);
  // By the clock of another machine, the file was written a little later than now.
  const timespec soon[2] = {{::time(nullptr) + 60, 0}, {::time(nullptr) + 60, 0}};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), soon, 0) == 0);
  CHECK(prune_index_cache(0, FreshIndexes::keep) == 0);
  CHECK(list_index_cache().size() == 1);
  CHECK(prune_index_cache(0, FreshIndexes::remove) == 1);
  CHECK(list_index_cache().empty());
}

TEST_CASE_FIXTURE(Fixture, "index store: the cache's limit is a number of bytes, or the default") {
  const Environment limit("TFRFAST_CACHE_BYTES", "12345");
  CHECK(index_cache_limit_bytes() == 12345);
  const Environment nonsense("TFRFAST_CACHE_BYTES", "much");
  CHECK(index_cache_limit_bytes() == std::uint64_t{4} << 30);
}

TEST_CASE_FIXTURE(Fixture, "index store: the sibling folder goes before the cache") {
  shard.write_records(100, 20);
  open();
  build_index(shard.path(), "", false);
  CHECK(open().index->origin() == data + ".tfrfast/index");
  CHECK(std::distance(std::filesystem::directory_iterator(data), {}) == 1);
}

TEST_CASE_FIXTURE(Fixture, "index store: what somebody else keeps in the cache's folder stays") {
  shard.write_records(100, 20);
  open_indexed(shard.path(), IoMode::mapped, {});
  const std::string index = cached_index_path(shard.path());
  const std::string kept_in = folder_of(index);
  for (const char* name : {"/0123456789abcdef-a", "/0123456789ABCDEF-a", "/0123456789abcde-a"}) {
    REQUIRE(::mkdir((index_cache_folder() + name).c_str(), 0700) == 0);
  }
  const std::vector<std::string> foreign = {
      index_cache_folder() + "/0123456789abcdef-a/index",  // no index inside
      index_cache_folder() + "/a film.mkv",
      index_cache_folder() + "/index",  // and an index in another place, or under another name
      index_cache_folder() + "/0123456789ABCDEF-a/index",
      index_cache_folder() + "/0123456789abcde-a/index",
      kept_in + "/index.old",
      kept_in + "/.tmp",
  };
  for (const std::string& path : foreign) write_file(path, read_file(index));
  write_file(foreign[0], std::string(1 << 20, 'x'));
  write_file(foreign[1], std::string(1 << 20, 'x'));
  const std::string link = kept_in + "/index-1";
  REQUIRE(::symlink(index.c_str(), link.c_str()) == 0);
  const std::string inner = kept_in + "/index-2";
  REQUIRE(::mkdir(inner.c_str(), 0700) == 0);

  const auto cached = list_index_cache();
  REQUIRE(cached.size() == 1);
  CHECK(cached[0].path == index);
  CHECK(prune_index_cache(0, FreshIndexes::remove) == 1);
  CHECK(::access(index.c_str(), F_OK) != 0);
  struct stat status;
  CHECK(::lstat(link.c_str(), &status) == 0);
  CHECK(::stat(inner.c_str(), &status) == 0);
  for (const std::string& path : foreign) CHECK(::stat(path.c_str(), &status) == 0);
}
