#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

struct Fixture {
  TemporaryFolder folder;
  TestShard shard{folder / "shard"};
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "reader: ranges are cut by bytes and records, never across shards") {
  shard.write_records(10, 84);  // 100 bytes with the frame
  const auto reader = open_reader({shard.path(), shard.path()});
  CHECK(reader->range_end(0, 350, 100) == 3);
  CHECK(reader->range_end(0, 1, 100) == 1);
  CHECK(reader->range_end(2, 400, 100) == 6);
  CHECK(reader->range_end(2, 400, 2) == 4);
  CHECK(reader->range_end(7, 10'000, 100) == 10);
  CHECK(reader->range_end(10, 10'000, 100) == 20);
  CHECK(reader->range_end(20, 10'000, 100) == 20);
}

TEST_CASE_FIXTURE(Fixture,
                  "reader: threads read one reader side by side, also while it is skipping") {
  shard.write_records(2000, 100);
  for (std::size_t bad = 0; bad < 2000; bad += 100) shard.flip_bit(shard.offset(bad) + 15);
  TestShard other(folder / "other");
  other.write_records(500, 30);
  const Environment cache("TFRFAST_CACHE_DIR", folder / "cache");
  FOR_EACH_IO(io) {
    open_reader({shard.path()}, {io, Verify::full, true, 1, {}});
    const auto reader = open_reader({shard.path(), other.path()}, {io, Verify::full, true, 3, {}});
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int number = 0; number < 6; ++number) {
      threads.emplace_back([&, number] {
        for (int round = 0; round < 5; ++round) {
          std::vector<std::int64_t> numbers(700);
          for (std::size_t i = 0; i < numbers.size(); ++i) {
            numbers[i] = static_cast<std::int64_t>((i * 7 + number * 331 + round) % 2500);
          }
          const auto batch = reader->read(numbers);
          for (std::size_t row = 0; row < batch->size(); ++row) {
            const auto record = static_cast<std::size_t>(batch->indices()[row]);
            const auto bytes = (*batch)[row];
            const std::string& expected =
                record < 2000 ? shard.record(record) : other.record(record - 2000);
            if (std::string(bytes.begin(), bytes.end()) != expected) ++wrong;
          }
          reader->skipped();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
    CHECK(reader->skipped().size() > 0);
  }
}

TEST_CASE_FIXTURE(Fixture,
                  "reader: threads read a mapped shard while it is cut, and the process lives") {
  FOR_EACH_IO(io) {
    shard = TestShard(shard.path());
    shard.write_records(20'000, 100);
    const auto reader = open_reader({shard.path()}, {io, Verify::full, false, 2});
    std::atomic<int> wrong{0}, failed{0};
    std::atomic<bool> cut{false};
    std::vector<std::thread> threads;
    for (int number = 0; number < 4; ++number) {
      threads.emplace_back([&, number] {
        for (int after_cut = 0, round = 0; after_cut < 3; ++round) {
          if (cut) ++after_cut;
          std::vector<std::int64_t> numbers(500);
          for (std::size_t i = 0; i < numbers.size(); ++i) {
            numbers[i] = static_cast<std::int64_t>((i * 37 + number * 5003 + round * 911) % 20'000);
          }
          try {
            const auto batch = reader->read(numbers);
            for (std::size_t row = 0; row < batch->size(); ++row) {
              const auto bytes = (*batch)[row];
              if (std::string(bytes.begin(), bytes.end()) != shard.record(numbers[row])) ++wrong;
            }
          } catch (const Error& error) {
            ++failed;
            if (error.kind() != ErrorKind::truncated) ++wrong;
          }
        }
      });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    REQUIRE(::truncate(shard.path().c_str(), 100'000) == 0);
    cut = true;
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
    CHECK(failed > 0);
  }
}
