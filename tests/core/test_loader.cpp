#include <doctest/doctest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "core/load/loader.h"
#include "core/order/in_order.h"
#include "core/order/shuffle.h"
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
  options.order = std::make_shared<const Shuffle>(kRecords);
  options.batch_size = batch_size;
  options.seed = seed;
  options.rank = rank;
  options.world = world;
  return options;
}

// Waits for the next batch, and returns any outcome but timed_out.
Loader::Wait wait_next(Loader& loader, LoaderPass& pass, LoadedBatch* batch) {
  Loader::Wait wait;
  do {
    wait = loader.wait_next(pass, 10, batch);
  } while (wait == Loader::Wait::timed_out);
  return wait;
}

// The next batch; false at the end of the pass.
bool next(Loader& loader, LoaderPass& pass, LoadedBatch* batch) {
  const Loader::Wait wait = wait_next(loader, pass, batch);
  REQUIRE((wait == Loader::Wait::ready || wait == Loader::Wait::pass_ended));
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
          const auto pass = loader.begin();
          CHECK(loader.place().epoch == static_cast<std::uint64_t>(epoch));
          while (next(loader, *pass, &batch)) count_rows(data, batch, &seen);
          CHECK(each_once(seen));
          CHECK_FALSE(next(loader, *pass, &batch));
        }
      }
    }
  }
}

TEST_CASE("50 random runs, stopped and resumed in other worlds, deliver every record once") {
  const Data data;
  std::mt19937 dice(1);
  const auto throw_dice = [&dice](unsigned sides) {
    return static_cast<unsigned>(1 + dice() % sides);
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
        const auto pass = loader.begin();
        for (unsigned step = 0; step < steps && next(loader, *pass, &batch); ++step) {
          count_rows(data, batch, &seen);
        }
        const Loader::Place place = loader.place();
        reached = place.epoch == run ? std::max(reached, place.position)
                                     : static_cast<std::int64_t>(kRecords);
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
    const auto pass = loader.begin();
    for (unsigned step = 0; step < steps && next(loader, *pass, &batch); ++step) continue;
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
    CHECK(loader.place().position == step * 10);
    REQUIRE(next(loader, *loader.begin(), &batch));
    plan.rows(2, step, expected.data(), nullptr);
    CHECK(std::equal(expected.begin(), expected.end(), batch.records->indices()));
  }
  CHECK(error_of([&] { loader.seek(0, kRecords + 1); }).kind() == ErrorKind::invalid);
  CHECK(loader.place().position == 760);
}

TEST_CASE("damage is an error at its place, again and again, and counts as nothing") {
  TemporaryFolder folder;
  TestShard shard(folder / "a");
  shard.write_records(100, 50);
  shard.flip_bit(shard.offset(42) + 20);
  Loader loader(open_reader({shard.path()}),
                [] {
                  PlanOptions options = plan_of(10);
                  options.order = std::make_shared<const InOrder>(100);
                  return options;
                }(),
                {3, 8});
  LoadedBatch batch;
  const auto pass = loader.begin();
  for (int step = 0; step < 4; ++step) REQUIRE(next(loader, *pass, &batch));
  for (int attempt = 0; attempt < 3; ++attempt) {
    const Error error = error_of([&] { next(loader, *pass, &batch); });
    CHECK(error.kind() == ErrorKind::corrupt);
    CHECK(error.place().record == 42);
    CHECK(loader.place().position == 40);
  }
  shard.flip_bit(shard.offset(42) + 20);
  REQUIRE(next(loader, *pass, &batch));
  CHECK(batch.records->indices()[2] == 42);
}

TEST_CASE("a forked child starts workers of its own" * doctest::skip(!kAllocatorSurvivesFork)) {
  const Data data;
  Loader loader(data.reader, plan_of(10), {3, 4});
  LoadedBatch batch;
  const auto pass = loader.begin();
  REQUIRE(next(loader, *pass, &batch));
  const auto steps_of = [&](LoaderPass& some_pass) {
    LoadedBatch in_child;
    int steps = 0;
    while (next(loader, some_pass, &in_child)) ++steps;
    return steps;
  };
  CHECK(run_in_child([&] { return steps_of(*pass) == 76 ? 0 : 1; }) == 0);
  // The child's own pass finishes the epoch that the parent is in. Its second pass is the next
  // epoch.
  CHECK(run_in_child([&] {
          if (steps_of(*loader.begin()) != 76) return 1;
          return steps_of(*loader.begin()) == 77 ? 0 : 2;
        }) == 0);
  CHECK(run_in_child([&] {
          LoadedBatch in_child;
          // the child continues its parent's pass, then begins another
          next(loader, *pass, &in_child);
          loader.begin();
          return loader.place().epoch == 1 ? 0 : 1;
        }) == 0);
  REQUIRE(next(loader, *pass, &batch));
  CHECK(loader.place().position == 20);
}

TEST_CASE("a child forked while threads are at work on a loader finds it whole" *
          doctest::skip(!kAllocatorSurvivesFork)) {
  const Data data;
  Loader loader(data.reader, plan_of(1), {2, 4});
  std::atomic<bool> done{false};
  std::vector<std::thread> consumers;
  for (int thread = 0; thread < 2; ++thread) {
    consumers.emplace_back([&] {
      while (!done) {
        const auto pass = loader.begin();
        LoadedBatch batch;
        while (!done && wait_next(loader, *pass, &batch) == Loader::Wait::ready) continue;
      }
    });
  }
  for (int round = 0; round < 20; ++round) {
    CHECK(run_in_child([&] {
            const Loader::Place place = loader.place();
            const auto pass = loader.begin();
            LoadedBatch batch;
            std::int64_t steps = place.step;
            while (next(loader, *pass, &batch)) ++steps;
            return steps == static_cast<std::int64_t>(kRecords) ? 0 : 1;
          }) == 0);
  }
  done = true;
  for (std::thread& consumer : consumers) consumer.join();
}

TEST_CASE("threads share a pass: each batch goes to one of them, and its end ends all") {
  const Data data;
  for (const unsigned prefetch : {1u, 3u, 20u}) {
    Loader loader(data.reader, plan_of(1), {2, prefetch});
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      const auto pass = loader.begin();
      std::mutex mutex;
      std::map<std::int64_t, int> seen;
      std::vector<std::thread> consumers;
      for (int thread = 0; thread < 4; ++thread) {
        consumers.emplace_back([&] {
          LoadedBatch batch;
          while (wait_next(loader, *pass, &batch) == Loader::Wait::ready) {
            const std::lock_guard lock(mutex);
            ++seen[batch.records->indices()[0]];
          }
        });
      }
      for (std::thread& consumer : consumers) consumer.join();
      CHECK(each_once(seen));
      CHECK(loader.place().epoch == epoch + 1);
      CHECK(loader.place().position == 0);
    }
  }
}

TEST_CASE("whatever other threads do to a loader, a waiting thread is told") {
  const Data data;
  for (int round = 0; round < 60; ++round) {
    Loader loader(data.reader, plan_of(1 + round % 3), {2, 1 + static_cast<unsigned>(round) % 2});
    const auto pass = loader.begin();
    std::atomic<int> told{0};
    std::atomic<int> running{0};
    std::vector<std::thread> consumers;
    for (int thread = 0; thread < 3; ++thread) {
      consumers.emplace_back([&] {
        LoadedBatch batch;
        Loader::Wait wait = Loader::Wait::ready;
        ++running;
        try {
          while (wait == Loader::Wait::ready) wait = wait_next(loader, *pass, &batch);
          if (wait == Loader::Wait::moved || wait == Loader::Wait::replaced ||
              wait == Loader::Wait::pass_ended) {
            ++told;
          }
        } catch (const Error& error) {
          if (error.kind() == ErrorKind::closed) ++told;
        }
      });
    }
    meet(running, 4);
    switch (round % 4) {
      case 0:
        loader.close();
        loader.close();
        break;
      case 1:
        loader.begin();
        break;
      case 2:
        loader.seek(5, 0);
        break;
      default:
        std::thread([&] { loader.close(); }).join();
    }
    for (std::thread& consumer : consumers) consumer.join();
    CHECK(told == 3);
  }
}

TEST_CASE("a pass that was left says why it has no more") {
  const Data data;
  Loader loader(data.reader, plan_of(10), {2, 3});
  LoadedBatch batch;
  const auto first = loader.begin();
  REQUIRE(next(loader, *first, &batch));
  const auto second = loader.begin();
  CHECK(loader.wait_next(*first, 0, &batch) == Loader::Wait::replaced);
  CHECK(loader.place().epoch == 1);
  loader.seek(1, 0);  // the loader is there already, but the pass ends nevertheless
  CHECK(loader.poll_next(*second, &batch) == Loader::Wait::moved);
  const auto third = loader.begin();
  CHECK(loader.place().epoch == 1);
  while (next(loader, *third, &batch)) continue;
  loader.begin();
  CHECK(loader.wait_next(*third, 0, &batch) == Loader::Wait::pass_ended);
  loader.close();
  CHECK(loader.wait_next(*third, 0, &batch) == Loader::Wait::pass_ended);
  CHECK(error_of([&] { loader.wait_next(*first, 0, &batch); }).kind() == ErrorKind::closed);
  CHECK(error_of([&] { loader.begin(); }).kind() == ErrorKind::closed);
  CHECK(error_of([&] { loader.seek(0, 0); }).kind() == ErrorKind::closed);
  CHECK(error_of([&] { loader.place(); }).kind() == ErrorKind::closed);
  CHECK(error_of([&] { loader.stats(); }).kind() == ErrorKind::closed);
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
  const auto pass = loader.begin();
  while (next(loader, *pass, &batch)) continue;
  done = true;
  watcher.join();
  const LoaderStats stats = loader.stats();
  CHECK(stats.records == kRecords);
  CHECK(stats.batches == 109);
}
