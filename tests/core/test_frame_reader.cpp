// Frames of every size are read alike in every order, I/O mode and verify mode. If the shard
// changes after indexing, wrong bytes are never returned.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cerrno>
#include <numeric>
#include <random>

#include "core/crc32c/crc32c.h"
#include "failing_calls.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

constexpr Verify kVerifies[] = {Verify::full, Verify::header};

struct Fixture {
  TemporaryFolder folder;
  TestShard shard{folder / "shard"};

  // Writes records from one byte to more than a megabyte, mostly small records.
  void write_many_sizes() {
    std::mt19937 random(5);
    for (const std::size_t bytes : {0, 1, 65'535, 65'536, 65'537, 600'000, 1'200'000, 0, 3}) {
      shard.write_record(payload(bytes, static_cast<unsigned>(bytes)));
      shard.write_records(40 + random() % 300, random() % 300);
    }
  }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "frames: every size, in order, shuffled and repeated") {
  write_many_sizes();
  std::vector<std::int64_t> order(shard.records());
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::int64_t> shuffled = order;
  std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937(1));
  std::vector<std::int64_t> repeated(700, 3);
  repeated.insert(repeated.end(), shuffled.begin(), shuffled.begin() + 50);
  FOR_EACH_IO(io) {
    for (const Verify verify : kVerifies) {
      for (const unsigned threads : {1u, 4u}) {
        const auto reader = open_reader({shard.path()}, {io, verify, false, threads});
        const StoredFile& file = *reader->shards()[0].file;
        const FileRange all{0, file.bytes()};
        for (const auto& numbers : {order, shuffled, repeated, order}) {
          const auto batch = reader->read(numbers);
          REQUIRE(batch->size() == numbers.size());
          for (std::size_t row = 0; row < numbers.size(); ++row) {
            REQUIRE(batch->indices()[row] == numbers[row]);
            const auto bytes = (*batch)[row];
            REQUIRE(std::string(bytes.begin(), bytes.end()) == shard.record(numbers[row]));
          }
          file.announce({&all, 1}, Reads::in_order);  // the next batch is read without the mapping
        }
      }
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "frames: a record of up to half a MiB costs one system call") {
  for (const std::size_t bytes : {1'000, 65'536, 65'537, 100'000, 524'288}) {
    shard.write_record(payload(bytes));
  }
  shard.write_record(payload(3 * 524'288));
  for (const Verify verify : kVerifies) {
    const auto reader = open_reader({shard.path()}, {IoMode::pread, verify, false, 1});
    for (std::uint64_t record = 0; record < shard.records(); ++record) {
      CAPTURE(record);
      const FailingCall reads("preadv", 1'000, EIO);
      CHECK(read_record(*reader, record) == shard.record(record));
      CHECK(reads.calls() == (record + 1 < shard.records() ? 1 : 3));
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "frames: mapped and unmapped shards mix in one batch") {
  shard.write_records(100, 50);
  TestShard other(folder / "other");
  other.write_records(100, 70);
  std::vector<IndexedShard> shards;
  for (const std::string& path : {shard.path(), other.path()}) {
    const IoMode io = shards.empty() ? IoMode::mapped : IoMode::pread;
    shards.push_back(open_indexed(path, io, {IndexUse::memory, "", {}}));
  }
  const Reader reader(std::make_shared<const ShardSet>(std::move(shards)), {});
  std::vector<std::int64_t> numbers(200);
  for (std::size_t i = 0; i < 200; ++i) numbers[i] = i % 2 * 100 + i / 2;
  const StoredFile& mapped = *reader.shards()[0].file;
  const FileRange half{0, mapped.bytes() / 2};
  for (int turn = 0; turn < 2; ++turn) {
    const auto records = strings_of(*reader.read(numbers));
    for (std::size_t i = 0; i < 200; ++i) {
      REQUIRE(records[i] == (i % 2 ? other : shard).record(i / 2));
    }
    mapped.announce({&half, 1}, Reads::in_order);
  }
}

TEST_CASE_FIXTURE(Fixture, "frames: a payload whose true checksum is zero is read in every mode") {
  const std::string found("\0\0\0\0\x82\xe8\x80\x57", 8);
  REQUIRE(masked_crc32c(reinterpret_cast<const std::uint8_t*>(found.data()), 8).value == 0);
  shard.write_record(found).write_record("next");
  FOR_EACH_IO(io) {
    for (const Verify verify : kVerifies) {
      CHECK(read_record(*open_reader({shard.path()}, {io, verify}), 0) == found);
    }
  }
}

TEST_CASE_FIXTURE(Fixture,
                  "frames: a record next to a lost page is read, and only the lost one fails") {
  shard.write_records(60, 500);
  const std::uint64_t cut = 8192;
  FOR_EACH_IO(io) {
    write_file(shard.path(), shard.bytes());
    const auto reader = open_reader({shard.path()}, {io});
    REQUIRE(::truncate(shard.path().c_str(), cut) == 0);
    std::vector<std::int64_t> numbers(60);
    std::iota(numbers.begin(), numbers.end(), 0);
    const std::uint64_t good = cut / 516;
    const Error error = error_of([&] { reader->read(numbers); });
    CHECK(error.kind() == ErrorKind::truncated);
    CHECK(error.place().path == shard.path());
    numbers.resize(good);
    CHECK(reader->read(numbers)->size() == good);
    const Reader::Range range = reader->read_range(0, 60);
    CHECK(range.batch->size() == good);
    CHECK(range.next == good + 1);
    REQUIRE(range.error);
    CHECK(range.error->kind() == ErrorKind::truncated);
  }
}
