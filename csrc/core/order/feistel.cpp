#include "core/order/feistel.h"

#include <bit>

namespace tfrfast {
namespace {

// Uses the multipliers of the 32-bit MurmurHash3 finaliser. `scale` uses only the top bits of the
// result, and the top bits depend on every bit of the input.
[[gnu::always_inline]] inline std::uint32_t hash(std::uint32_t half, std::uint32_t before,
                                                 std::uint32_t after) noexcept {
  std::uint32_t value = (half ^ before) * 0x85ebca6bu;
  value = (value ^ (value >> 15)) + after;
  return value * 0xc2b2ae35u;
}

// Maps [0, 2^32) onto [0, bound) without a division.
[[gnu::always_inline]] inline std::uint32_t scale(std::uint32_t value,
                                                  std::uint32_t bound) noexcept {
  return static_cast<std::uint32_t>((std::uint64_t{value} * bound) >> 32);
}

// Adds and subtracts modulo `columns`. Both operands are less than `columns`, and `columns` is at
// most 2^31, so nothing wraps.
[[gnu::always_inline]] inline std::uint32_t add(std::uint32_t left, std::uint32_t shift,
                                                std::uint32_t columns) noexcept {
  const std::uint32_t sum = left + shift;
  return sum >= columns ? sum - columns : sum;
}

[[gnu::always_inline]] inline std::uint32_t subtract(std::uint32_t left, std::uint32_t shift,
                                                     std::uint32_t columns) noexcept {
  return left >= shift ? left - shift : left + columns - shift;
}

// The kernels run one pair of rounds over all lanes before the next pair. The compiler vectorises
// each inner loop for the target of the enclosing function.
[[gnu::always_inline]] inline void forward(const RoundKeys& keys, Grid grid, Lanes& at,
                                           std::size_t lanes) noexcept {
  const std::uint32_t columns = grid.columns;
  const std::uint32_t rows = 1u << grid.right_bits;
  lanes = (lanes + kLaneGroup - 1) / kLaneGroup * kLaneGroup;
  for (int round = 0; round < keys.rounds; round += 2) {
    const std::uint32_t before0 = keys.before[round], after0 = keys.after[round];
    const std::uint32_t before1 = keys.before[round + 1], after1 = keys.after[round + 1];
    for (std::size_t i = 0; i < lanes; ++i) {
      std::uint32_t left = at.left[i], right = at.right[i];
      left = add(left, scale(hash(right, before0, after0), columns), columns);
      right = (right + scale(hash(left, before1, after1), rows)) & (rows - 1);
      at.left[i] = left;
      at.right[i] = right;
    }
  }
}

[[gnu::always_inline]] inline void forward_each(const RoundKeys& keys, const LaneGrids& grids,
                                                Lanes& at, std::size_t lanes) noexcept {
  lanes = (lanes + kLaneGroup - 1) / kLaneGroup * kLaneGroup;
  for (int round = 0; round < keys.rounds; round += 2) {
    const std::uint32_t before0 = keys.before[round], after0 = keys.after[round];
    const std::uint32_t before1 = keys.before[round + 1], after1 = keys.after[round + 1];
    for (std::size_t i = 0; i < lanes; ++i) {
      const std::uint32_t columns = grids.columns[i], rows = grids.rows[i];
      const std::uint32_t tweak0 = grids.tweak_before[i], tweak1 = grids.tweak_after[i];
      std::uint32_t left = at.left[i], right = at.right[i];
      left = add(left, scale(hash(right, before0 ^ tweak0, after0 ^ tweak1), columns), columns);
      right = (right + scale(hash(left, before1 ^ tweak0, after1 ^ tweak1), rows)) & (rows - 1);
      at.left[i] = left;
      at.right[i] = right;
    }
  }
}

#define TFRFAST_FEISTEL_KERNELS(suffix, target)                                               \
  target void forward_##suffix(const RoundKeys& keys, Grid grid, Lanes& at,                   \
                               std::size_t lanes) noexcept {                                  \
    forward(keys, grid, at, lanes);                                                           \
  }                                                                                           \
  target void forward_each_##suffix(const RoundKeys& keys, const LaneGrids& grids, Lanes& at, \
                                    std::size_t lanes) noexcept {                             \
    forward_each(keys, grids, at, lanes);                                                     \
  }

TFRFAST_FEISTEL_KERNELS(portable, )
#if defined(__x86_64__)
TFRFAST_FEISTEL_KERNELS(avx2, [[gnu::target("avx2")]])
TFRFAST_FEISTEL_KERNELS(avx512, [[gnu::target("avx512f,avx512vl,avx512dq,avx512bw")]])
#endif
#undef TFRFAST_FEISTEL_KERNELS

constexpr FeistelKernel kKernels[] = {
    {"portable", []() noexcept { return true; }, forward_portable, forward_each_portable},
#if defined(__x86_64__)
    {"avx2", []() noexcept { return __builtin_cpu_supports("avx2") != 0; }, forward_avx2,
     forward_each_avx2},
    {"avx512",
     []() noexcept {
       return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
              __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
     },
     forward_avx512, forward_each_avx512},
#endif
};

}  // namespace

Grid grid_for(std::int64_t size) noexcept {
  if (size <= 0) return {};
  const auto last = static_cast<std::uint64_t>(size) - 1;
  const auto right_bits = static_cast<std::uint32_t>(std::bit_width(last)) / 2;
  return {static_cast<std::uint32_t>(last >> right_bits) + 1, right_bits};
}

RoundKeys expand_key(const SipKey& key, int rounds) noexcept {
  RoundKeys keys;
  keys.rounds = rounds;
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t word = siphash(key, {static_cast<std::uint64_t>(round)});
    keys.before[round] = static_cast<std::uint32_t>(word);
    keys.after[round] = static_cast<std::uint32_t>(word >> 32);
  }
  return keys;
}

std::span<const FeistelKernel> feistel_kernels() noexcept {
  return kKernels;
}

const FeistelKernel& active_feistel_kernel() noexcept {
  static const FeistelKernel& kernel = []() -> const FeistelKernel& {
    const FeistelKernel* best = kKernels;
    for (const FeistelKernel& candidate : kKernels) {
      if (candidate.supported()) best = &candidate;
    }
    return *best;
  }();
  return kernel;
}

std::uint64_t feistel_forward(const RoundKeys& keys, Grid grid, std::uint64_t position,
                              std::uint64_t tweak) noexcept {
  const std::uint32_t rows = 1u << grid.right_bits;
  const auto tweak0 = static_cast<std::uint32_t>(tweak);
  const auto tweak1 = static_cast<std::uint32_t>(tweak >> 32);
  const auto hashed = [&](std::uint32_t half, int round, std::uint32_t bound) {
    return scale(hash(half, keys.before[round] ^ tweak0, keys.after[round] ^ tweak1), bound);
  };
  auto left = static_cast<std::uint32_t>(position >> grid.right_bits);
  auto right = static_cast<std::uint32_t>(position) & (rows - 1);
  for (int round = 0; round < keys.rounds; round += 2) {
    left = add(left, hashed(right, round, grid.columns), grid.columns);
    right = (right + hashed(left, round + 1, rows)) & (rows - 1);
  }
  return std::uint64_t{left} << grid.right_bits | right;
}

std::uint64_t feistel_backward(const RoundKeys& keys, Grid grid, std::uint64_t position) noexcept {
  const std::uint32_t rows = 1u << grid.right_bits;
  auto left = static_cast<std::uint32_t>(position >> grid.right_bits);
  auto right = static_cast<std::uint32_t>(position) & (rows - 1);
  for (int round = keys.rounds - 2; round >= 0; round -= 2) {
    right = (right - scale(hash(left, keys.before[round + 1], keys.after[round + 1]), rows)) &
            (rows - 1);
    left = subtract(left, scale(hash(right, keys.before[round], keys.after[round]), grid.columns),
                    grid.columns);
  }
  return std::uint64_t{left} << grid.right_bits | right;
}

}  // namespace tfrfast
