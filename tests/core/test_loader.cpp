#include <doctest/doctest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "core/load/loader.h"
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

bool each_once(const std::map<std::int64_t, int>& seen) {
  if (seen.size() != kRecords) return false;
  for (const auto& [number, times] : seen) {
    if (times != 1) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("a loader goes at any moment, its workers with it") {
  const Data data;
  for (unsigned steps = 0; steps < 40; ++steps) {
    Loader loader(data.reader, plan_of(1 + steps), {4, 1 + steps % 7});
    LoadedBatch batch;
    const auto pass = loader.begin();
    for (unsigned step = 0; step < steps && next(loader, *pass, &batch); ++step) continue;
  }
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
  const LoaderCounters& stats = loader.stats();
  CHECK(stats.records == kRecords);
  CHECK(stats.batches == 109);
}
