#include <doctest/doctest.h>

#include "core/crc32c/crc32c.h"
#include "core/index/shard_index.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

ShardFacts facts_of(std::uint64_t bytes) {
  return {bytes, 0, bytes, Compression::none};
}

// An index over offsets in other memory, like a mapped one.
struct Foreign {
  explicit Foreign(std::size_t records) : offsets(records + 1) {
    for (std::size_t i = 0; i <= records; ++i) offsets[i] = 16 * i;
    sealed = offsets;
  }
  ShardIndex index() const {
    std::vector<std::uint32_t> crcs;
    for (std::size_t first = 0; first < offsets.size(); first += ShardIndex::kBlockOffsets) {
      const std::size_t count = std::min(ShardIndex::kBlockOffsets, offsets.size() - first);
      crcs.push_back(
          crc32c(reinterpret_cast<const std::uint8_t*>(&sealed[first]), count * sizeof sealed[0]));
    }
    return ShardIndex(facts_of(16 * (offsets.size() - 1)), IndexSource{nullptr, "the index file"},
                      offsets.data(), offsets.size() - 1, crcs, {});
  }
  std::vector<std::uint64_t> offsets;
  std::vector<std::uint64_t> sealed;  // what the checksums are of
};

}  // namespace

TEST_CASE("shard index: frames are between their offsets") {
  const ShardIndex index(facts_of(100), {0, 16, 50, 100}, {});
  CHECK(index.record_count() == 3);
  CHECK(index.frame(0).payload_bytes == 0);
  CHECK(index.frame(1).offset == 16);
  CHECK(index.frame(1).payload_bytes == 18);
  CHECK(index.frame(2).payload_bytes == 34);
  CHECK(index.copy_offsets() == std::vector<std::uint64_t>{0, 16, 50, 100});
}

TEST_CASE("shard index: a frame before damage ends where the damage begins") {
  const ShardIndex index(facts_of(300), {20, 40, 100, 120, 160},
                         {{DamageKind::bad_header, 0, 20, 0, 0},
                          {DamageKind::bad_header, 60, 100, 2, 0},
                          {DamageKind::torn_header, 290, 300, 4, 1}});
  CHECK(index.frame(0).payload_bytes == 4);
  CHECK(index.frame(1).payload_bytes == 4);  // 40 to 60
  CHECK(index.frame(2).payload_bytes == 4);
  CHECK(index.frame(3).payload_bytes == 24);
}

TEST_CASE("shard index: entries that no shard can have are refused") {
  const auto check = [](std::vector<std::uint64_t> offsets, std::uint64_t bytes) {
    const ShardIndex index(facts_of(bytes), std::move(offsets), {});
    const Error error = error_of([&] { index.frame(0); });
    CHECK(error.kind() == ErrorKind::stale_index);
    CHECK(holds(error.message(), "tfrfast index --force"));
  };
  check({50, 20}, 100);                     // ends before it begins
  check({50, 65}, 100);                     // shorter than its frame
  check({50, 101}, 100);                    // past the shard
  check({~std::uint64_t{0} - 5, 10}, 100);  // would wrap
  check({0, ~std::uint64_t{0}}, 100);
}

TEST_CASE("shard index: foreign entries are checked by block, when first touched") {
  constexpr std::size_t kBlock = ShardIndex::kBlockOffsets;
  Foreign foreign(3 * kBlock);
  foreign.offsets[2 * kBlock + 5] += 1;
  const ShardIndex index = foreign.index();
  CHECK(index.frame(0).offset == 0);
  CHECK(index.frame(2 * kBlock - 2).payload_bytes == 0);
  // Its end is in the damaged block.
  for (const std::size_t number : {2 * kBlock - 1, 2 * kBlock, 3 * kBlock - 1}) {
    const Error error = error_of([&] { index.frame(number); });
    CHECK(error.kind() == ErrorKind::stale_index);
    CHECK(holds(error.message(), "'the index file' is damaged"));
    CHECK(holds(error.message(), "records 8192 to 12287"));
    CHECK(holds(error.message(), "tfrfast index --force"));
  }
  CHECK(error_of([&] { index.copy_offsets(); }).kind() == ErrorKind::stale_index);
}

TEST_CASE("shard index: the end of the last record counts, too") {
  for (const std::size_t records : {ShardIndex::kBlockOffsets - 1, ShardIndex::kBlockOffsets}) {
    Foreign foreign(records);
    foreign.offsets.back() += 16;
    CHECK(error_of([&] { foreign.index().frame(records - 1); }).kind() == ErrorKind::stale_index);
    foreign.offsets.back() -= 16;
    CHECK(foreign.index().frame(records - 1).payload_bytes == 0);
    CHECK(foreign.index().copy_offsets() == foreign.offsets);
  }
}
