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
