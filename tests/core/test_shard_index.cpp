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

// An index over packed offsets in other memory, like a mapped index.
struct Foreign {
  explicit Foreign(std::vector<std::uint64_t> offsets)
      : bytes(offsets.back()), packed(pack_offsets(offsets)) {
    seal();
  }
  explicit Foreign(std::size_t records) : Foreign(offsets_of(records)) {}

  static std::vector<std::uint64_t> offsets_of(std::size_t records) {
    std::vector<std::uint64_t> offsets(records + 1);
    for (std::size_t i = 0; i <= records; ++i) offsets[i] = 16 * i;
    return offsets;
  }
  void seal() {
    crcs.resize(PackedOffsets::page_count_of(packed.count));
    for (std::size_t page = 0; page < crcs.size(); ++page) {
      REQUIRE(packed.view().checksum(page, &crcs[page]));
    }
  }
  ShardIndex index() const {
    return ShardIndex(facts_of(bytes), IndexSource{nullptr, "the index file"}, packed.view(), crcs,
                      {});
  }

  std::uint64_t bytes;
  PackedBytes packed;
  std::vector<std::uint32_t> crcs;
};

}  // namespace

TEST_CASE("shard index: frames are between their offsets") {
  const ShardIndex index(facts_of(100), {0, 16, 50, 100}, {});
  CHECK(index.record_count() == 3);
  CHECK(index.frame(0).payload_bytes == 0);
  CHECK(index.frame(1).offset == 16);
  CHECK(index.frame(1).payload_bytes == 18);
  CHECK(index.frame(2).payload_bytes == 34);
  CHECK(index.copy_packed().unpack() == std::vector<std::uint64_t>{0, 16, 50, 100});
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

TEST_CASE("shard index: foreign entries are checked by page, when first touched") {
  constexpr std::size_t kPage = PackedOffsets::kPageOffsets;
  for (const bool in_residuals : {false, true}) {
    std::vector<std::uint64_t> offsets = Foreign::offsets_of(3 * kPage);
    if (in_residuals) {
      for (std::size_t i = 1; i < offsets.size(); i += 2) offsets[i] += 16;
      for (std::size_t i = 0; i < offsets.size(); ++i) offsets[i] += 100 * i;
      --offsets.back();
    }
    Foreign foreign(offsets);
    if (in_residuals) {
      foreign.packed.residuals[foreign.packed.blocks[2 * 32 + 5].residuals_at * 16] ^= 1;
    } else {
      foreign.packed.blocks[2 * 32 + 5].slope ^= 1;
    }
    const ShardIndex index = foreign.index();
    CHECK(index.frame(0).offset == 0);
    CHECK(index.frame(2 * kPage - 2).offset == offsets[2 * kPage - 2]);
    // Its end is in the damaged page.
    for (const std::size_t number : {2 * kPage - 1, 2 * kPage, 3 * kPage - 1}) {
      const Error error = error_of([&] { index.frame(number); });
      CHECK(error.kind() == ErrorKind::stale_index);
      CHECK(holds(error.message(), "'the index file' is damaged"));
      CHECK(holds(error.message(), "records 8192 to 12287"));
      CHECK(holds(error.message(), "tfrfast index --force"));
    }
    CHECK(error_of([&] { index.copy_packed().unpack(); }).kind() == ErrorKind::stale_index);
    CHECK(error_of([&] { index.copy_packed(); }).kind() == ErrorKind::stale_index);
    CHECK(error_of([&] { index.has_same_entries(index); }).kind() == ErrorKind::stale_index);
  }
}

TEST_CASE("shard index: the end of the last record counts, too") {
  for (const std::size_t records : {PackedOffsets::kPageOffsets - 1, PackedOffsets::kPageOffsets}) {
    Foreign foreign(records);
    const std::uint64_t good = foreign.packed.blocks.back().base_and_width;
    foreign.packed.blocks.back().base_and_width += 16 << 8;
    CHECK(error_of([&] { foreign.index().frame(records - 1); }).kind() == ErrorKind::stale_index);
    foreign.packed.blocks.back().base_and_width = good;
    CHECK(foreign.index().frame(records - 1).payload_bytes == 0);
    CHECK(foreign.index().copy_packed().unpack() == Foreign::offsets_of(records));
  }
}

TEST_CASE("shard index: what goes wrong behind good checksums is refused when touched") {
  Foreign foreign(3 * PackedOffsets::kPageOffsets);
  foreign.packed.blocks[40].base_and_width += 100 << 8;  // inside the second page
  foreign.seal();
  const ShardIndex index = foreign.index();
  CHECK(index.frame(0).offset == 0);
  const Error error = error_of([&] { index.frame(5000); });
  CHECK(holds(error.message(), "of the records 4096 to 8191 some begin inside others"));
  CHECK(error_of([&] { index.frame(4095); }).message() == error.message());
}

TEST_CASE("shard index: residuals that are not where they belong are damage") {
  std::vector<std::uint64_t> offsets(10'000);
  for (std::size_t i = 0; i < offsets.size(); ++i) offsets[i] = 100 * i + 30 * (i % 3 == 1);
  for (const std::size_t block : {0, 1, 31, 32, 33, 78}) {
    for (const std::uint32_t at : {0u, 1u, 5000u, ~0u}) {
      CAPTURE(block);
      CAPTURE(at);
      Foreign foreign(offsets);
      if (foreign.packed.blocks[block].residuals_at == at) continue;
      foreign.packed.blocks[block].residuals_at = at;
      for (std::size_t page = 0; page < foreign.crcs.size(); ++page) {
        foreign.packed.view().checksum(page, &foreign.crcs[page]);
      }
      const Error error = error_of([&] { foreign.index().copy_packed().unpack(); });
      CHECK(holds(error.message(), "do not match their checksum"));
    }
  }
}

TEST_CASE("shard index: indexes in memory and elsewhere have the same entries if they are equal") {
  std::vector<std::uint64_t> offsets(10'000);
  for (std::size_t i = 0; i < offsets.size(); ++i) offsets[i] = 100 * i + 30 * (i % 3 == 1);
  const Foreign foreign(offsets);
  const ShardIndex index(facts_of(offsets.back()), offsets, {});
  CHECK(index.has_same_entries(foreign.index()));
  CHECK(foreign.index().has_same_entries(index));
  for (const std::size_t at : {std::size_t{127}, std::size_t{128}, offsets.size() - 1}) {
    std::vector<std::uint64_t> others = offsets;
    others[at] += 1;
    CHECK_FALSE(Foreign(others).index().has_same_entries(index));
  }
}
