// Frames of every size are read alike in every order, I/O mode and verify mode. If the shard
// changes after indexing, wrong bytes are never returned.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cerrno>
#include <numeric>
#include <random>

#include "core/base/bytes.h"
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

TEST_CASE_FIXTURE(Fixture,
                  "frames: a flipped payload bit is an error that names all there is to know") {
  shard.write_records(5, 50).flip_bit(shard.offset(3) + 20);
  TestShard before(folder / "before");
  before.write_records(2, 5);
  FOR_EACH_IO(io) {
    const auto reader = open_reader({before.path(), shard.path()}, {io});
    CHECK(read_record(*reader, 4) == shard.record(2));
    const Error error = error_of([&] { read_record(*reader, 5); });
    CHECK(error.kind() == ErrorKind::corrupt);
    CHECK(error.place().path == shard.path());
    CHECK(error.place().record == 3);
    CHECK(error.place().offset == 198);
    CHECK(holds(error.message(), "Corrupt payload: record 3 of '" + shard.path() +
                                     "' (record 5 of all) at byte 198 has 50 bytes with masked "
                                     "CRC-32C 0x"));
    CHECK(holds(error.message(), ", but the file expects 0x"));
    CHECK(holds(error.message(),
                "Restore the file, or leave such records out with "
                "on_corruption=\"skip\"."));
    // Without verification, the damaged bytes are returned.
    CHECK(read_record(*open_reader({shard.path()}, {io, Verify::header}), 3).size() == 50);
  }
}

TEST_CASE_FIXTURE(Fixture,
                  "frames: any flipped bit of a frame is noticed by a reader that is open") {
  shard.write_records(3, 8);
  FOR_EACH_IO(io) {
    const auto reader = open_reader({shard.path()}, {io});
    for (std::uint64_t bit = 8 * shard.offset(1); bit < 8 * shard.offset(2); ++bit) {
      CAPTURE(bit);
      shard.flip_bit(bit / 8, bit % 8);
      const Error error = error_of([&] { read_record(*reader, 1); });
      CHECK((error.kind() == ErrorKind::corrupt || error.kind() == ErrorKind::stale_index));
      CHECK(read_record(*reader, 0) == shard.record(0));
      CHECK(read_record(*reader, 2) == shard.record(2));
      shard.flip_bit(bit / 8, bit % 8);
    }
    CHECK(read_record(*reader, 1) == shard.record(1));
  }
}

TEST_CASE_FIXTURE(Fixture, "frames: a shard rewritten under a reader never gives wrong bytes") {
  shard.write_records(200, 30);
  TestShard other(folder / "other");
  other.write_record(payload(14, 99)).write_records(150, 30).write_record(payload(16, 98));
  other.write_records(40, 20).write_record(payload(shard.size() - other.size() - 56, 97));
  other.write_record(payload(24, 96));
  REQUIRE(other.size() == shard.size());
  const std::string old_bytes = shard.bytes();
  const std::int64_t mtime_ns = shard.mtime_ns();
  FOR_EACH_IO(io) {
    for (const Verify verify : kVerifies) {
      for (const bool by_rename : {false, true}) {
        for (const bool mtime_back : {false, true}) {
          shard.overwrite(0, old_bytes).set_mtime_ns(mtime_ns);
          const auto reader = open_reader({shard.path()}, {io, verify});
          if (by_rename) {
            shard.replace_with(other.bytes());
          } else {
            shard.overwrite(0, other.bytes());
          }
          // Two files that are written at once may have the same time, because clocks of
          // filesystems tick slowly.
          shard.set_mtime_ns(mtime_ns + (mtime_back ? 0 : 2'000'000'000));
          for (std::size_t record = 0; record < shard.records(); ++record) {
            std::string read;
            try {
              read = read_record(*reader, record);
            } catch (const Error& error) {
              const bool expected =
                  error.kind() == ErrorKind::stale_index || error.kind() == ErrorKind::corrupt;
              REQUIRE(expected);
              if (!mtime_back) REQUIRE(error.kind() == ErrorKind::stale_index);
              continue;
            }
            // An old file that was only unlinked may still be read.
            REQUIRE(by_rename);
            REQUIRE(read == shard.record(record));
          }
        }
      }
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "frames: the stale index says what it expected and how to index again") {
  shard.write_records(3, 50);
  TestShard other(folder / "other");
  other.write_records(1, 50).write_record(payload(40, 9)).write_record(payload(60, 9));
  FOR_EACH_IO(io) {
    write_file(shard.path(), shard.bytes());
    const auto reader = open_reader({shard.path()}, {io});
    write_file(shard.path(), other.bytes());
    shard.set_mtime_ns(shard.mtime_ns() + 2'000'000'000);
    const Error length = error_of([&] { read_record(*reader, 1); });
    CHECK(length.kind() == ErrorKind::stale_index);
    CHECK(holds(length.message(), "The index does not fit: record 1 of '" + shard.path() +
                                      "' at byte 66 should have 50 bytes, but the file says 40."));
    CHECK(holds(length.message(), "`tfrfast index --force " + shard.path() + "`"));
    const Error header = error_of([&] { read_record(*reader, 2); });
    CHECK(header.kind() == ErrorKind::stale_index);
    CHECK(holds(header.message(), "should have a length of 50 with masked CRC-32C 0x"));
    CHECK(holds(header.message(), "but the file has length "));
    CHECK(read_record(*reader, 0) == shard.record(0));
  }
}

TEST_CASE_FIXTURE(Fixture,
                  "frames: a shard cut under a reader at any byte gives right bytes or an error") {
  shard.write_records(4, 1100);
  const std::string whole = shard.bytes();
  for (std::uint64_t cut = 0; cut < whole.size(); cut += 1 + cut % 41) {
    CAPTURE(cut);
    FOR_EACH_IO(io) {
      for (const Verify verify : kVerifies) {
        write_file(shard.path(), whole);
        const auto reader = open_reader({shard.path()}, {io, verify});
        REQUIRE(::truncate(shard.path().c_str(), static_cast<off_t>(cut)) == 0);
        for (std::size_t record = 0; record < 4; ++record) {
          const std::uint64_t end = record == 3 ? whole.size() : shard.offset(record + 1);
          try {
            const std::string read = read_record(*reader, record);
            REQUIRE(read == shard.record(record));
            // At most the checksum may be missing, and only if it is not verified.
            const bool unasked = verify != Verify::full && cut >= end - kFooterBytes;
            REQUIRE((cut >= end || unasked));
          } catch (const Error& error) {
            REQUIRE(cut < end);
            CHECK(error.kind() == ErrorKind::truncated);
            CHECK(error.place().path == shard.path());
            CHECK(error.message().find("truncated") != std::string::npos);
          }
        }
      }
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "frames: a payload whose true checksum is zero is read in every mode") {
  // Solved backwards from the CRC: four bytes can give the CRC any value.
  std::string found(8, '\0');
  auto* bytes = reinterpret_cast<std::uint8_t*>(found.data());
  std::uint32_t wanted = 0u - 0xa282ead8u;
  wanted = (wanted << 15) | (wanted >> 17);
  // The CRC is linear: solve for the last four bytes bit by bit.
  std::uint32_t columns[32];
  const std::uint32_t base = crc32c(bytes, 8);
  for (unsigned bit = 0; bit < 32; ++bit) {
    store_little_endian<std::uint32_t>(bytes + 4, 1u << bit);
    columns[bit] = crc32c(bytes, 8) ^ base;
  }
  std::uint32_t rest = wanted ^ base, solution = 0, pivots[32] = {}, makers[32] = {};
  for (unsigned bit = 0; bit < 32; ++bit) {
    std::uint32_t value = columns[bit], made = 1u << bit;
    for (int top = 31; top >= 0; --top) {
      if ((value >> top & 1) == 0) continue;
      if (pivots[top] == 0) {
        pivots[top] = value, makers[top] = made;
        break;
      }
      value ^= pivots[top], made ^= makers[top];
    }
  }
  for (int top = 31; top >= 0; --top) {
    if ((rest >> top & 1) != 0) rest ^= pivots[top], solution ^= makers[top];
  }
  store_little_endian<std::uint32_t>(bytes + 4, solution);
  REQUIRE(masked_crc32c(bytes, 8).value == 0);
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

TEST_CASE_FIXTURE(Fixture, "frames: failures and stale indexes are not skipped as damage is") {
  shard.write_records(60, 500);
  FOR_EACH_IO(io) {
    write_file(shard.path(), shard.bytes());
    const auto reader = open_reader({shard.path()}, {io, Verify::full, true});
    REQUIRE(::truncate(shard.path().c_str(), 1000) == 0);
    CHECK(error_of([&] { read_record(*reader, 10); }).kind() == ErrorKind::truncated);
    CHECK(reader->skipped().empty());
  }
}
