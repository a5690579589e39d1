#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "core/read/batch_space.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

struct Fixture {
  TemporaryFolder folder;
  TestShard shard{folder / "shard"};
};

std::vector<std::int64_t> numbers_to(std::size_t count) {
  std::vector<std::int64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

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

TEST_CASE_FIXTURE(Fixture, "reader: a forked child reads while the parent's threads read" *
                               doctest::skip(!kAllocatorSurvivesFork)) {
  shard.write_records(3000, 50).flip_bit(shard.offset(5) + 15);
  FOR_EACH_IO(io) {
    const auto reader = open_reader({shard.path()}, {io, Verify::full, true, 3});
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (int number = 0; number < 3; ++number) {
      threads.emplace_back([&] {
        while (!stop) reader->read(numbers_to(3000)), reader->skipped();
      });
    }
    for (int round = 0; round < 5; ++round) {
      CHECK(run_in_child([&] {
              const auto batch = reader->read(numbers_to(3000));
              return batch->size() == 2999 && strings_of(*batch)[2998] == shard.record(2999) &&
                             reader->skipped().size() == 1
                         ? 0
                         : 1;
            }) == 0);
    }
    stop = true;
    for (std::thread& thread : threads) thread.join();
  }
}

TEST_CASE_FIXTURE(Fixture,
                  "reader: an index that goes bad under a reader is an error, not a crash") {
  // Records of different lengths make the index large enough to be mapped.
  constexpr unsigned kRecords = 150'000;
  std::string bytes;
  for (unsigned i = 0; i < kRecords; ++i) bytes += frame_of(payload(i * i % 23, i));
  shard.append(bytes);
  const IndexOptions indexes{IndexUse::automatic, folder / "indexes", {}};
  open_reader({shard.path()}, {IoMode::mapped, Verify::full, false, 2, indexes});
  const auto reader =
      open_reader({shard.path()}, {IoMode::mapped, Verify::full, false, 2, indexes});
  REQUIRE(::truncate((folder / "indexes/index").c_str(), 4096) == 0);
  const Error error = error_of([&] { reader->read(numbers_to(kRecords)); });
  CHECK(error.kind() == ErrorKind::stale_index);
  CHECK(holds(error.message(), "indexes/index"));
  CHECK(error_of([&] { reader->read_range(100'000, kRecords); }).kind() == ErrorKind::stale_index);
}

TEST_CASE("reader: lengths whose sum wraps are an error that names sum and record") {
  // Sparse and in memory, because few filesystems on disks allow such a large file.
  const int descriptor = ::memfd_create("huge", 0);
  REQUIRE(descriptor >= 0);
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  const std::uint64_t huge = std::uint64_t{1} << 62;
  std::uint8_t header[kHeaderBytes];
  encode_header(huge, header);
  REQUIRE(::pwrite(descriptor, header, sizeof header, 0) == sizeof header);
  REQUIRE(::ftruncate(descriptor, static_cast<off_t>(kFrameOverhead + huge)) == 0);
  FOR_EACH_IO(io) {
    const auto reader = open_reader({path, path, path, path}, {io});
    const std::int64_t numbers[] = {0, 1, 2, 3};
    Error error = error_of([&] { reader->read(numbers); });
    CHECK(error.kind() == ErrorKind::memory);
    CHECK(holds(error.message(), "The 4 records of a batch have 2^64 or more bytes."));
    error = error_of([&] { reader->read({numbers, 3}); });
    CHECK(holds(error.message(), "The 3 records of a batch have " + std::to_string(3 * huge)));
    CHECK(holds(error.message(), "record 0 of '" + path + "' at byte 0, of 4611686018427387904"));
    CHECK(error_of([&] { check_space(reader->locate(2)); }).kind() == ErrorKind::memory);
    const Reader::Range range = reader->read_range(1, 2);
    REQUIRE(range.error);
    CHECK(range.error->kind() == ErrorKind::memory);
    CHECK(range.next == 2);
  }
  ::close(descriptor);
}

TEST_CASE_FIXTURE(Fixture, "reader: numbers that do not exist are named") {
  shard.write_records(10, 20);
  const auto reader = open_reader({shard.path()});
  for (const std::int64_t number : {10L, -1L, 1L << 62}) {
    const Error error = error_of([&] { reader->read({&number, 1}); });
    CHECK(error.kind() == ErrorKind::out_of_range);
    CHECK(holds(error.message(),
                "Record " + std::to_string(number) + " does not exist: there are 10 records."));
  }
}
