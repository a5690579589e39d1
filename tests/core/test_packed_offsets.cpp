#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "core/index/packed_offsets.h"

using namespace tfrfast;

namespace {

using Offsets = std::vector<std::uint64_t>;
using Random = std::mt19937_64;

// Frames whose payloads have the lengths that `length` returns.
template <class Length>
Offsets frames(std::size_t records, Length length) {
  Offsets offsets{0};
  for (std::size_t i = 0; i < records; ++i) {
    offsets.push_back(offsets.back() + 16 + static_cast<std::uint64_t>(std::max(0.0, length())));
  }
  return offsets;
}

// The bits a record in an index file, page checksums included.
double bits_a_record(const Offsets& offsets) {
  const PackedBytes packed = pack_offsets(offsets);
  const std::size_t bytes = packed.blocks.size() * sizeof(OffsetBlock) + packed.residuals.size() +
                            4 * PackedOffsets::page_count_of(offsets.size());
  return 8.0 * static_cast<double>(bytes) / static_cast<double>(offsets.size() - 1);
}

bool holds_load(const std::vector<std::uint8_t>& bytes, const void* place) {
  const auto* const byte = static_cast<const std::uint8_t*>(place);
  return byte >= bytes.data() && byte + 8 <= bytes.data() + bytes.size();
}

// Checks that all ways to pack and to unpack offsets agree.
void check_every_way(const Offsets& offsets) {
  const PackedBytes packed = pack_offsets(offsets);
  OffsetPacker packer;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    packer.append({&offsets[i], 1});
    REQUIRE(packer.size() == i + 1);
    REQUIRE(packer[i] == offsets[i]);
    REQUIRE(packer[i / 2] == offsets[i / 2]);
  }
  const PackedBytes one_by_one = std::move(packer).finish();
  REQUIRE(one_by_one.residuals == packed.residuals);
  REQUIRE(one_by_one.count == packed.count);
  REQUIRE(packed.unpack() == offsets);
  const PackedOffsets view = packed.view();
  REQUIRE(view.size() == offsets.size());
  Offsets found(offsets.size());
  for (std::size_t block = 0; block < view.blocks().size(); ++block) {
    const std::size_t first = block * PackedOffsets::kBlockOffsets;
    CHECK(view.unpack(block, found.data() + first) ==
          std::min(PackedOffsets::kBlockOffsets, offsets.size() - first));
  }
  REQUIRE(found == offsets);
  bool same = true;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    same = same && view.place_of_block(i) == &packed.blocks[i / PackedOffsets::kBlockOffsets];
    same = same && holds_load(packed.residuals, view.place_of_residual(i));
    same = same && view[i] == offsets[i];
    if (i + 1 == offsets.size()) break;
    const auto [begin, next] = view.pair(i);
    same = same && begin == offsets[i] && next == offsets[i + 1];
  }
  CHECK(same);
  for (std::uint64_t page = 0; page < PackedOffsets::page_count_of(offsets.size()); ++page) {
    std::uint32_t crc;
    CHECK(view.checksum(page, &crc));
  }
}

std::uint64_t width_of(const OffsetBlock& block) {
  return block.base_and_width & 0xff;
}

}  // namespace

TEST_CASE("packed offsets: regular and random lengths, around the blocks") {
  Random random(1);
  std::normal_distribution<double> ctr(258, 20);
  std::lognormal_distribution<double> jpeg(std::log(110e3), 0.5);
  std::lognormal_distribution<double> text(6, 1.2);
  std::uniform_real_distribution<double> any(0, 1e9);
  for (const std::size_t records :
       {0, 1, 2, 126, 127, 128, 129, 255, 256, 4094, 4095, 4096, 9999}) {
    CAPTURE(records);
    check_every_way(frames(records, [] { return 0.0; }));
    check_every_way(frames(records, [] { return 258.0; }));
    check_every_way(frames(records, [&] { return ctr(random); }));
    check_every_way(frames(records, [&] { return jpeg(random); }));
    check_every_way(frames(records, [&] { return text(random); }));
    check_every_way(frames(records, [&] { return any(random); }));
  }
}

TEST_CASE("packed offsets: they take no more than they may") {
  Random random(2);
  std::normal_distribution<double> ctr(258, 20);
  std::normal_distribution<double> three(3200, 400);
  std::lognormal_distribution<double> jpeg(std::log(110e3), 0.5);
  constexpr std::size_t kRecords = 200'000;
  CHECK(bits_a_record(frames(kRecords, [] { return 258.0; })) < 1.1);
  CHECK(bits_a_record(frames(kRecords, [&] { return ctr(random); })) < 9.7);
  CHECK(bits_a_record(frames(kRecords, [&] { return three(random); })) < 14.0);
  CHECK(bits_a_record(frames(kRecords, [&] { return jpeg(random); })) < 21.3);
}

TEST_CASE("packed offsets: any numbers come out as they went in") {
  Random random(3);
  for (int turn = 0; turn < 300; ++turn) {
    Offsets offsets(1 + random() % 700);
    // Blocks of every width, and some of all 64 bits.
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      if (i % 128 == 0) bits = random() % 65;
      offsets[i] = bits == 0 ? 77 : random() >> (64 - bits);
    }
    check_every_way(offsets);
  }
  check_every_way({~std::uint64_t{0}});
  check_every_way({0, ~std::uint64_t{0}});
  check_every_way({~std::uint64_t{0}, 0, 5});
}

TEST_CASE("packed offsets: one wild block costs its neighbours nothing") {
  Offsets offsets;
  for (std::uint64_t i = 0; i < 3 * 128; ++i) offsets.push_back(100 * i);
  offsets[200] = std::uint64_t{1} << 60;
  const PackedBytes packed = pack_offsets(offsets);
  CHECK(width_of(packed.blocks[0]) == 0);
  CHECK(width_of(packed.blocks[1]) == PackedOffsets::kWildWidth);
  CHECK(packed.blocks[1].base_and_width == PackedOffsets::kWildWidth);
  CHECK(packed.blocks[1].slope == 0);
  CHECK(width_of(packed.blocks[2]) == 0);
  CHECK(packed.residuals.size() == 128 * 8 + PackedOffsets::kResidualPadding);
  check_every_way(offsets);
}

TEST_CASE("packed offsets: records of gigabytes have residuals, not wild blocks") {
  check_every_way(frames(1000, [] { return 5e9; }));
  const PackedBytes packed = pack_offsets(frames(1000, [] { return 5e9; }));
  for (const OffsetBlock& block : packed.blocks) CHECK(width_of(block) < 42);
}

TEST_CASE("packed offsets: nothing is read outside of bytes that make no sense") {
  Random random(4);
  for (int turn = 0; turn < 2000; ++turn) {
    const std::uint64_t count = 1 + random() % 600;
    // In memory of exactly their size, so that a sanitizer notices reads outside.
    std::vector<OffsetBlock> blocks(PackedOffsets::block_count_of(count));
    std::vector<std::uint8_t> residuals(8 + random() % 3000);
    for (OffsetBlock& block : blocks) {
      block.base_and_width = random();
      block.slope = static_cast<std::uint32_t>(random());
      block.residuals_at = static_cast<std::uint32_t>(random() >> (32 + random() % 32));
    }
    for (std::uint8_t& byte : residuals) byte = static_cast<std::uint8_t>(random());
    const PackedOffsets view(blocks.data(), residuals, count);
    std::uint64_t block[PackedOffsets::kBlockOffsets];
    for (std::uint64_t i = 0; i < count; ++i) {
      CHECK(holds_load(residuals, view.place_of_residual(i)));
      const std::uint64_t one = view[i];
      if (i % PackedOffsets::kBlockOffsets == 0)
        view.unpack(i / PackedOffsets::kBlockOffsets, block);
      CHECK(block[i % PackedOffsets::kBlockOffsets] == one);
      if (i + 1 < count) {
        CHECK(view.pair(i).begin == one);
        CHECK(view.pair(i).next == view[i + 1]);
      }
    }
    std::uint32_t crc;
    view.checksum(0, &crc);
  }
}

TEST_CASE("packed offsets: residuals past the end are nowhere") {
  PackedBytes packed = pack_offsets(frames(100, [i = 0]() mutable { return ++i % 7 * 10.0; }));
  packed.blocks[0].residuals_at = 1000;
  CHECK(packed.view()[0] == PackedOffsets::kNowhere);
  CHECK(packed.view()[100] == PackedOffsets::kNowhere);
  CHECK(packed.view().pair(5).next == PackedOffsets::kNowhere);
}
