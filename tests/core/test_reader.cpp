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

  std::vector<std::string> records(std::initializer_list<std::size_t> numbers) const {
    std::vector<std::string> all;
    for (const std::size_t number : numbers) all.push_back(shard.record(number));
    return all;
  }
};

std::vector<std::int64_t> numbers_to(std::size_t count) {
  std::vector<std::int64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "reader: the records asked for, in that order, over all shards") {
  shard.write_records(10, 20);
  FOR_EACH_IO(io) {
    const auto reader = open_reader({shard.path(), shard.path()}, {io});
    CHECK(reader->record_count() == 20);
    const std::int64_t numbers[] = {19, 0, 10, 10, 3};
    const auto batch = reader->read(numbers);
    CHECK(strings_of(*batch) == records({9, 0, 0, 0, 3}));
    CHECK(batch->indices()[0] == 19);
    CHECK(reader->read(std::span<const std::int64_t>())->size() == 0);
    CHECK(reader->locate(13).number == 3);
    CHECK(reader->locate(13).record == 13);
    CHECK(reader->locate(13).frame.offset == shard.offset(3));
  }
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

TEST_CASE_FIXTURE(Fixture, "reader: of many bad records the first one asked for is reported") {
  shard.write_records(3000, 20);
  for (const std::size_t bad : {2999, 1500, 700}) shard.flip_bit(shard.offset(bad) + 15);
  FOR_EACH_IO(io) {
    for (const unsigned threads : {1u, 4u}) {
      const auto reader = open_reader({shard.path()}, {io, Verify::full, false, threads});
      CHECK(error_of([&] { reader->read(numbers_to(3000)); }).place().record == 700);
      std::vector<std::int64_t> backwards = numbers_to(3000);
      std::reverse(backwards.begin(), backwards.end());
      CHECK(error_of([&] { reader->read(backwards); }).place().record == 2999);
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "reader: skipping leaves damaged records out and lists them once") {
  shard.write_records(10, 20).flip_bit(shard.offset(2) + 15).flip_bit(shard.offset(7) + 15);
  FOR_EACH_IO(io) {
    const auto reader = open_reader({shard.path()}, {io, Verify::full, true});
    CHECK(reader->record_count() == 10);
    for (int round = 0; round < 2; ++round) {
      const auto batch = reader->read(numbers_to(10));
      CHECK(strings_of(*batch) == records({0, 1, 3, 4, 5, 6, 8, 9}));
      CHECK(batch->indices()[2] == 3);
    }
    const auto skipped = reader->skipped();
    REQUIRE(skipped.size() == 2);
    CHECK(skipped[0].path == shard.path());
    CHECK(skipped[0].begin == shard.offset(2));
    CHECK(skipped[0].end == shard.offset(3));
    CHECK(skipped[0].records == 1);
    CHECK(skipped[1].begin == shard.offset(7));
    // A single record cannot be left out.
    std::uint8_t space[20];
    CHECK(error_of([&] { reader->read_into(reader->locate(2), space); }).kind() ==
          ErrorKind::corrupt);
  }
}

TEST_CASE_FIXTURE(Fixture,
                  "reader: skipping numbers the good frames and lists the damage between") {
  shard.write_records(6, 20).flip_bit(shard.offset(1) + 8).truncate_to(shard.size() - 5);
  FOR_EACH_IO(io) {
    CHECK(error_of([&] { open_reader({shard.path()}, {io}); }).kind() == ErrorKind::corrupt);
    const auto reader = open_reader({shard.path()}, {io, Verify::full, true});
    CHECK(read_all(*reader) == records({0, 2, 3, 4}));
    const auto skipped = reader->skipped();
    REQUIRE(skipped.size() == 2);
    CHECK(skipped[0].begin == shard.offset(1));
    CHECK(skipped[0].records == 1);
    CHECK(skipped[1].begin == shard.offset(5));
    CHECK(skipped[1].end == shard.size());
  }
}

TEST_CASE_FIXTURE(Fixture,
                  "reader: a range stops at what cannot be delivered and goes on after it") {
  shard.write_records(10, 20).flip_bit(shard.offset(4) + 15);
  FOR_EACH_IO(io) {
    const auto reader = open_reader({shard.path()}, {io});
    const Reader::Range first = reader->read_range(1, 9);
    CHECK(strings_of(*first.batch) == records({1, 2, 3}));
    REQUIRE(first.error);
    CHECK(first.error->place().record == 4);
    CHECK(first.next == 5);
    const Reader::Range second = reader->read_range(first.next, 9);
    CHECK(strings_of(*second.batch) == records({5, 6, 7, 8}));
    CHECK_FALSE(second.error);
    CHECK(second.next == 9);
    CHECK(reader->read_range(8, 100).next == 10);
    CHECK(reader->read_range(50, 100).batch->size() == 0);
  }
}

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
