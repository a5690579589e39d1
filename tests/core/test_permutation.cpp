#include <doctest/doctest.h>

#include <numeric>
#include <random>
#include <vector>

#include "core/base/error.h"
#include "core/order/order.h"
#include "core/order/permutation.h"

using namespace tfrfast;

namespace {

// Whether each record has one position, and the inverse finds the position.
bool is_bijection_with_inverse(std::int64_t size, std::uint64_t seed) {
  const Permutation permutation(size, seed, 0);
  const auto count = static_cast<std::size_t>(size);
  std::vector<std::int64_t> positions(count), records(count);
  std::iota(positions.begin(), positions.end(), 0);
  permutation.evaluate(positions.data(), count, records.data());
  std::vector<bool> seen(count);
  for (const std::int64_t record : records) {
    if (record < 0 || record >= size || seen[static_cast<std::size_t>(record)]) return false;
    seen[static_cast<std::size_t>(record)] = true;
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (permutation.inverse(records[i]) != positions[i]) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("SipHash-2-4 gives the published vectors") {
  const SipKey key{0x0706050403020100u, 0x0f0e0d0c0b0a0908u};
  CHECK(siphash(key, {}) == 0x726fdb47dd0e0e31u);
  CHECK(siphash(key, {0x0706050403020100u}) == 0x93f5f5799a932462u);
  CHECK(siphash(key, {0x0706050403020100u, 0x0f0e0d0c0b0a0908u}) == 0x3f2acc7f57c29bdbu);
}

TEST_CASE("a permutation of every size up to 4096 is a bijection, and its inverse is right") {
  for (std::int64_t size = 0; size <= 4096; ++size) {
    CAPTURE(size);
    REQUIRE(is_bijection_with_inverse(size, 17));
  }
}

TEST_CASE("the inverse is right at sizes too large to enumerate") {
  std::mt19937_64 random(5);
  for (int bit = 23; bit <= 62; ++bit) {
    for (int off = -1; off <= 1; ++off) {
      const std::int64_t size = (std::int64_t{1} << bit) + off;
      if (size > kMaxPermutationSize) continue;
      CAPTURE(size);
      const Permutation permutation(size, 3, 9);
      std::vector<std::int64_t> positions{0, 1, size - 2, size - 1}, records(1000);
      while (positions.size() < 1000) {
        positions.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(size)));
      }
      permutation.evaluate(positions.data(), 1000, records.data());
      for (std::size_t i = 0; i < 1000; ++i) {
        REQUIRE(records[i] >= 0);
        REQUIRE(records[i] < size);
        REQUIRE(permutation.inverse(records[i]) == positions[i]);
      }
    }
  }
}

TEST_CASE("every kernel gives the same bits") {
  std::mt19937_64 random(1);
  for (const std::int64_t size : {2LL, 7LL, 1000LL, 99999LL, 1LL << 40, 1LL << 62}) {
    const Grid grid = grid_for(size);
    const RoundKeys keys = expand_key({random(), random()}, size < 1000 ? 24 : 12);
    const std::uint32_t tweak_before = static_cast<std::uint32_t>(random());
    const std::uint32_t tweak_after = static_cast<std::uint32_t>(random());
    RoundKeys tweaked = keys;
    LaneGrids grids{};
    for (int round = 0; round < keys.rounds; ++round) {
      tweaked.before[round] ^= tweak_before;
      tweaked.after[round] ^= tweak_after;
    }
    std::vector<std::uint64_t> in(kLanes);
    Lanes start{};
    for (std::size_t i = 0; i < kLanes; ++i) {
      in[i] = random() % static_cast<std::uint64_t>(size);
      start.left[i] = static_cast<std::uint32_t>(in[i] >> grid.right_bits);
      start.right[i] = static_cast<std::uint32_t>(in[i]) & ((1u << grid.right_bits) - 1);
      grids.columns[i] = grid.columns;
      grids.rows[i] = 1u << grid.right_bits;
      grids.tweak_before[i] = tweak_before;
      grids.tweak_after[i] = tweak_after;
    }
    const auto value = [&](const Lanes& lanes, std::size_t i) {
      return std::uint64_t{lanes.left[i]} << grid.right_bits | lanes.right[i];
    };
    for (const FeistelKernel& kernel : feistel_kernels()) {
      if (!kernel.supported()) continue;
      CAPTURE(kernel.name);
      CAPTURE(size);
      Lanes forward = start, each = start;
      kernel.forward(keys, grid, forward, kLanes);
      kernel.forward_each(keys, grids, each, kLanes);
      for (std::size_t i = 0; i < kLanes; ++i) {
        REQUIRE(value(forward, i) == feistel_forward(keys, grid, in[i]));
        REQUIRE(feistel_backward(keys, grid, value(forward, i)) == in[i]);
        REQUIRE(value(each, i) == feistel_forward(tweaked, grid, in[i]));
      }
    }
  }
}

TEST_CASE("the orders of version 1 are frozen") {
  REQUIRE(kOrderVersion == 1);
  struct Golden {
    std::int64_t size;
    std::uint64_t seed, epoch;
    std::vector<std::int64_t> records;
  };
  const Golden goldens[] = {
      {10, 0u, 0u, {3, 4, 5, 1}},
      {761, 42u, 7u, {733, 756, 352, 691}},
      {65536, 1u, 0u, {39662, 62758, 13271, 34333}},
      {65537, 1u, 0u, {45045, 12307, 12940, 53370}},
      {2000000, 0u, 0u, {1289454, 251351, 6841, 1373738}},
      {1000000000,
       18446744073709551615u,
       18446744073709551615u,
       {260290550, 35419189, 174030789, 126846631}},
      {4611686018427387904,
       0u,
       0u,
       {4504891319929648924, 989574329798772307, 2865873311172117937, 365958828646533022}},
  };
  for (const Golden& golden : goldens) {
    CAPTURE(golden.size);
    const Permutation permutation(golden.size, golden.seed, golden.epoch);
    for (std::size_t i = 0; i < golden.records.size(); ++i) {
      CHECK(permutation.at(static_cast<std::int64_t>(i)) == golden.records[i]);
    }
  }
}

TEST_CASE("sizes that no permutation can have are refused") {
  CHECK_THROWS_WITH_AS(Permutation(-1, 0, 0), "A permutation needs a size from 0 to 2**62, not -1.",
                       Error);
  CHECK_THROWS_AS(Permutation(kMaxPermutationSize + 1, 0, 0), Error);
  CHECK(Permutation(1, 99, 99).at(0) == 0);
}
