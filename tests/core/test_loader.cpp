#include <doctest/doctest.h>

#include <atomic>
#include <map>
#include <random>
#include <thread>

#include "core/load/loader.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

constexpr std::size_t kRecords = 761;

struct Data {
  explicit Data(const Opening& opening = {}) {
    TestShard(folder / "a").write_records(500, 100);
    TestShard(folder / "b").write_records(kRecords - 500, 30);
    reader = open_reader({folder / "a", folder / "b"}, opening);
    all = read_all(*reader);
  }
  TemporaryFolder folder;
  std::shared_ptr<const Reader> reader;
  std::vector<std::string> all;
};

PlanOptions plan_of(std::int64_t batch_size, std::uint64_t seed = 0, std::int64_t rank = 0,
                    std::int64_t world = 1) {
  PlanOptions options;
  options.batch_size = batch_size;
  options.seed = seed;
  options.rank = rank;
  options.world = world;
  return options;
}

// The next batch; false at the end of the epoch.
bool next(Loader& loader, LoadedBatch* batch) {
  Loader::Wait wait;
  do {
    wait = loader.wait_next(10, batch);
  } while (wait == Loader::Wait::timed_out);
  return wait == Loader::Wait::ready;
}

void count_rows(const Data& data, const LoadedBatch& batch, std::map<std::int64_t, int>* seen) {
  const std::vector<std::string> records = strings_of(*batch.records);
  for (std::size_t row = 0; row < records.size(); ++row) {
    const std::int64_t number = batch.records->indices()[row];
    REQUIRE(records[row] == data.all[static_cast<std::size_t>(number)]);
    if (batch.records->valid()[row]) ++(*seen)[number];
  }
}

bool each_once(const std::map<std::int64_t, int>& seen) {
  if (seen.size() != kRecords) return false;
  for (const auto& [number, times] : seen) {
    if (times != 1) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("each epoch delivers every record once, whatever the threads and the depth") {
  FOR_EACH_IO(io) {
    const Data data({.io = io});
    for (const unsigned threads : {1u, 2u, 4u}) {
      for (const unsigned prefetch : {1u, 3u, 20u}) {
        Loader loader(data.reader, plan_of(50), {threads, prefetch});
        for (int epoch = 0; epoch < 3; ++epoch) {
          std::map<std::int64_t, int> seen;
          LoadedBatch batch;
          while (next(loader, &batch)) count_rows(data, batch, &seen);
          CHECK(each_once(seen));
          loader.next_epoch();
        }
      }
    }
  }
}

TEST_CASE("50 random runs, stopped and resumed in other worlds, deliver every record once") {
  const Data data;
  std::mt19937 dice(1);
  const auto throw_dice = [&dice](unsigned most) {
    return static_cast<unsigned>(1 + dice() % most);
  };
  for (unsigned run = 0; run < 50; ++run) {
    std::map<std::int64_t, int> seen;
    std::int64_t position = 0;
    while (position < static_cast<std::int64_t>(kRecords)) {
      const std::int64_t world = throw_dice(4);
      const std::int64_t batch_size = throw_dice(90);
      const unsigned steps = throw_dice(8);
      std::int64_t reached = position;
      for (std::int64_t rank = 0; rank < world; ++rank) {
        Loader loader(data.reader, plan_of(batch_size, run, rank, world),
                      {throw_dice(4), throw_dice(6)});
        loader.seek(run, position);
        LoadedBatch batch;
        for (unsigned step = 0; step < steps && next(loader, &batch); ++step) {
          count_rows(data, batch, &seen);
        }
        reached = std::max(reached, loader.position());
      }
      REQUIRE(reached > position);
      position = reached;
    }
    REQUIRE(each_once(seen));
  }
}

TEST_CASE("a loader goes at any moment, its workers with it") {
  const Data data;
  for (unsigned steps = 0; steps < 40; ++steps) {
    Loader loader(data.reader, plan_of(1 + steps), {4, 1 + steps % 7});
    LoadedBatch batch;
    for (unsigned step = 0; step < steps && next(loader, &batch); ++step) continue;
  }
}

TEST_CASE("seeking moves the workers, or keeps them where nothing changes") {
  const Data data;
  Loader loader(data.reader, plan_of(10, 5), {3, 4});
  const Plan& plan = loader.whole_epoch();
  LoadedBatch batch;
  std::vector<std::int64_t> expected(10);
  for (const std::int64_t step : {0, 40, 3, 0, 75}) {
    loader.seek(2, step * 10);
    loader.seek(2, step * 10);
    CHECK(loader.position() == step * 10);
    REQUIRE(next(loader, &batch));
    plan.rows(2, step, expected.data(), nullptr);
    CHECK(std::equal(expected.begin(), expected.end(), batch.records->indices()));
  }
  CHECK(error_of([&] { loader.seek(0, kRecords + 1); }).kind() == ErrorKind::invalid);
  CHECK(loader.position() == 760);
}

TEST_CASE("damage is an error at its place, again and again, and counts as nothing") {
  TemporaryFolder folder;
  TestShard shard(folder / "a");
  shard.write_records(100, 50);
  shard.flip_bit(shard.offset(42) + 20);
  Loader loader(open_reader({shard.path()}),
                [] {
                  PlanOptions options = plan_of(10);
                  options.shuffle = Shuffle::none;
                  return options;
                }(),
                {3, 8});
  LoadedBatch batch;
  for (int step = 0; step < 4; ++step) REQUIRE(next(loader, &batch));
  for (int attempt = 0; attempt < 3; ++attempt) {
    const Error error = error_of([&] { next(loader, &batch); });
    CHECK(error.kind() == ErrorKind::corrupt);
    CHECK(error.place().record == 42);
    CHECK(loader.position() == 40);
  }
  shard.flip_bit(shard.offset(42) + 20);
  REQUIRE(next(loader, &batch));
  CHECK(batch.records->indices()[2] == 42);
}

TEST_CASE("a forked child starts workers of its own" * doctest::skip(!kAllocatorSurvivesFork)) {
  const Data data;
  Loader loader(data.reader, plan_of(10), {3, 4});
  LoadedBatch batch;
  REQUIRE(next(loader, &batch));
  const int status = run_in_child([&] {
    LoadedBatch in_child;
    int steps = 0;
    while (next(loader, &in_child)) ++steps;
    return steps == 76 ? 0 : 1;
  });
  CHECK(status == 0);
  REQUIRE(next(loader, &batch));
  CHECK(loader.position() == 20);
}

TEST_CASE("statistics may be read while another thread consumes") {
  const Data data;
  Loader loader(data.reader, plan_of(7), {2, 3});
  LoadedBatch batch;
  std::atomic<bool> done{false};
  std::thread watcher([&] {
    std::uint64_t before = 0;
    while (!done) {
      const std::uint64_t now = loader.stats().records;
      CHECK(now >= before);
      before = now;
    }
  });
  while (next(loader, &batch)) continue;
  done = true;
  watcher.join();
  const LoaderStats stats = loader.stats();
  CHECK(stats.records == kRecords);
  CHECK(stats.batches == 109);
}
