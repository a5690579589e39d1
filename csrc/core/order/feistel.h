// The Feistel network under every order: keyed bijections of an a x b grid, evaluated at many
// positions at a time. docs/permutation.md specifies every bit. A change of any result needs a new
// algorithm version.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/order/siphash.h"

namespace tfrfast {

// Maps positions of [0, size) to (left, right) with left < columns and right < 2^right_bits, so
// splitting and joining are shifts. columns * 2^right_bits exceeds size by less than 2^right_bits.
struct Grid {
  std::uint32_t columns = 0;
  std::uint32_t right_bits = 0;
};
inline constexpr std::int64_t kMaxGridSize = std::int64_t{1} << 62;
Grid grid_for(std::int64_t size) noexcept;  // 0 <= size <= kMaxGridSize

inline constexpr int kMaxRounds = 24;

// Two 32-bit keys per round. Even rounds change left, odd rounds change right. `rounds` is even.
struct RoundKeys {
  std::array<std::uint32_t, kMaxRounds> before{};
  std::array<std::uint32_t, kMaxRounds> after{};
  int rounds = 0;
};
RoundKeys expand_key(const SipKey& key, int rounds) noexcept;

// Scratch memory of the kernels, which work on whole groups of kLaneGroup lanes. Unused lanes of
// the last group must be initialised. The kernels overwrite unused lanes.
inline constexpr std::size_t kLanes = 256;
inline constexpr std::size_t kLaneGroup = 16;
struct alignas(64) Lanes {
  std::uint32_t left[kLanes];
  std::uint32_t right[kLanes];
};

// A grid and a tweak per lane: many small bijections under one key. The tweak is XORed into every
// round's keys.
struct alignas(64) LaneGrids {
  std::uint32_t columns[kLanes];
  std::uint32_t rows[kLanes];  // 2^right_bits
  std::uint32_t tweak_before[kLanes];
  std::uint32_t tweak_after[kLanes];
};

// The kernels for an instruction set. All sets are compiled from one source and give equal results.
struct FeistelKernel {
  const char* name;
  bool (*supported)() noexcept;
  void (*forward)(const RoundKeys&, Grid, Lanes&, std::size_t lanes) noexcept;
  void (*forward_each)(const RoundKeys&, const LaneGrids&, Lanes&, std::size_t lanes) noexcept;
};
std::span<const FeistelKernel> feistel_kernels() noexcept;  // the portable set first
const FeistelKernel& active_feistel_kernel() noexcept;      // the last supported set

// Maps a single position. The tweak's low half is XORed into `before`, its high half into `after`.
std::uint64_t feistel_forward(const RoundKeys& keys, Grid grid, std::uint64_t position,
                              std::uint64_t tweak = 0) noexcept;
std::uint64_t feistel_backward(const RoundKeys& keys, Grid grid, std::uint64_t position) noexcept;

}  // namespace tfrfast
