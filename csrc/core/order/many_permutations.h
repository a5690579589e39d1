// Evaluates many small permutations under one key, side by side.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/order/feistel.h"

namespace tfrfast {

// Holds up to kLanes permutations, each with a size and a tweak of its own.
class ManyPermutations {
 public:
  explicit ManyPermutations(const RoundKeys& keys) noexcept : keys_(keys) {}

  std::size_t count() const noexcept { return count_; }
  void clear() noexcept { count_ = 0; }

  void add(std::int64_t size, std::uint64_t tweak, std::int64_t value) noexcept {
    const std::size_t i = count_++;
    const Grid grid = grid_for(size);
    sizes_[i] = size;
    right_bits_[i] = grid.right_bits;
    grids_.columns[i] = grid.columns;
    grids_.rows[i] = 1u << grid.right_bits;
    grids_.tweak_before[i] = static_cast<std::uint32_t>(tweak);
    grids_.tweak_after[i] = static_cast<std::uint32_t>(tweak >> 32);
    lanes_.left[i] = static_cast<std::uint32_t>(value >> grid.right_bits);
    lanes_.right[i] = static_cast<std::uint32_t>(value) & (grids_.rows[i] - 1);
  }

  void run() noexcept {
    for (std::size_t i = count_; i % kLaneGroup != 0; ++i) {
      lanes_.left[i] = lanes_.right[i] = grids_.tweak_before[i] = grids_.tweak_after[i] = 0;
      grids_.columns[i] = grids_.rows[i] = 1;
    }
    active_feistel_kernel().forward_each(keys_, grids_, lanes_, count_);
  }

  std::int64_t result(std::size_t i) const noexcept {
    std::uint64_t value = std::uint64_t{lanes_.left[i]} << right_bits_[i] | lanes_.right[i];
    while (value >= static_cast<std::uint64_t>(sizes_[i])) {
      value = feistel_forward(keys_, {grids_.columns[i], right_bits_[i]}, value,
                              grids_.tweak_before[i] | std::uint64_t{grids_.tweak_after[i]} << 32);
    }
    return static_cast<std::int64_t>(value);
  }

 private:
  const RoundKeys& keys_;
  std::size_t count_ = 0;
  Lanes lanes_;
  LaneGrids grids_;
  std::int64_t sizes_[kLanes];
  std::uint32_t right_bits_[kLanes];
};

}  // namespace tfrfast
