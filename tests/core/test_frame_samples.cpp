// The samples of frames in an index, which distinguish shards if no other fact does.
#include <doctest/doctest.h>

#include "core/index/frame_samples.h"
#include "core/index/index_state.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

struct Fixture {
  TemporaryFolder folder;
  AssumedToLast assumed;
  TestShard shard{folder / "shard"};

  Fixture() { assume_versions_last(false); }

  std::shared_ptr<const Reader> open() const {
    Opening opening;
    opening.index = {IndexUse::proven, folder / "indexes", {}};
    return open_reader({shard.path()}, opening);
  }
  // Records of the same lengths with other payloads, in a file of the same size and time.
  void replace_with_others() {
    const std::int64_t mtime_ns = shard.mtime_ns();
    std::string others;
    for (unsigned i = 0; i < shard.records(); ++i) {
      others += frame_of(payload(shard.record(i).size(), 1000 + i));
    }
    shard.replace_with(others).set_mtime_ns(mtime_ns);
  }
};

}  // namespace

TEST_CASE("frame samples: there are at most 32, and as many as a power of two allows") {
  CHECK(FrameSamples::stride_of(0) == 1);
  CHECK(FrameSamples::stride_of(32) == 1);
  CHECK(FrameSamples::stride_of(33) == 2);
  CHECK(FrameSamples::stride_of(64) == 2);
  CHECK(FrameSamples::stride_of(65) == 4);
  CHECK(FrameSamples::stride_of(std::uint64_t{1} << 62) == std::uint64_t{1} << 57);
}

TEST_CASE_FIXTURE(Fixture, "frame samples: those added one by one are those of the file") {
  for (std::size_t records = 0; records <= 140; ++records) {
    const auto file = StoredFile::open(shard.path());
    FrameSamples samples;
    for (std::size_t i = 0; i < records; ++i) {
      if (!samples.wants(i)) continue;
      const std::string frame = frame_of(shard.record(i));
      const auto* const bytes = reinterpret_cast<const std::uint8_t*>(frame.data());
      samples.add(bytes, bytes + frame.size() - kFooterBytes);
    }
    CHECK(samples.crc() == crc_of_samples(*file, records, [&](std::uint64_t number) {
            return shard.offset(number);
          }));
    shard.write_record(payload(records % 7, static_cast<unsigned>(records)));
  }
}

TEST_CASE_FIXTURE(Fixture,
                  "frame samples: a shard that was replaced is noticed after the first batch") {
  shard.write_records(100, 20);
  build_index(shard.path(), folder / "indexes", true);
  CHECK(open()->read(std::vector<std::int64_t>{1, 2})->size() == 2);
  replace_with_others();
  const auto reader = open();
  // A single read returns the present record, verified.
  CHECK(read_record(*reader, 3) == payload(20, 1003));
  const std::vector<std::int64_t> rows{5, 6, 7};
  for (int round = 0; round < 2; ++round) {
    const Error error = error_of([&] { reader->read(rows); });
    CHECK(error.kind() == ErrorKind::stale_index);
    CHECK(error.place().path == shard.path());
  }
  CHECK(error_of([&] { read_record(*reader, 3); }).kind() == ErrorKind::stale_index);
}

TEST_CASE_FIXTURE(Fixture, "frame samples: they are compared once, and not where versions last") {
  shard.write_records(100, 20);
  build_index(shard.path(), folder / "indexes", true);
  const auto reader = open();
  const std::vector<std::int64_t> rows{5, 6, 7};
  for (int round = 0; round < 3; ++round) CHECK(reader->read(rows)->size() == 3);
  const auto index = build_index(shard.path(), folder / "indexes", false).index;
  REQUIRE(index->facts().samples_crc.has_value());
  replace_with_others();
  CHECK(samples_differ(*index, *StoredFile::open(shard.path())));
  // Rewritten after the comparison: the reader returns the present records.
  CHECK(reader->read(rows)->size() == 3);
  assume_versions_last(true);
  CHECK_FALSE(samples_differ(*index, *StoredFile::open(shard.path())));
}

TEST_CASE_FIXTURE(Fixture, "frame samples: headers that claim too much fit no index") {
  shard.write_records(3, 20);
  const auto index = build_index(shard.path(), folder / "indexes", true).index;
  shard.overwrite(shard.offset(2), std::string(8, '\xff'));
  CHECK(samples_differ(*index, *StoredFile::open(shard.path())));
}
