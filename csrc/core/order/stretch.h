// A stretch of positions that the sources of a mixture share by weight.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string_view>

#include "core/order/many_permutations.h"
#include "core/order/period_shuffle.h"
#include "core/order/slots.h"

namespace tfrfast {

enum class Arrangement : std::uint8_t {
  permuted,  // the slots of each period in any order
  spread,    // the slots of every period in the same order, as even as possible
};
const char* name_of(Arrangement arrangement) noexcept;
Arrangement arrangement_named(std::string_view name);  // throws Error(invalid)

// Whole periods, then a rest. Each source gets a share of the rest, rounded by largest remainders.
// The draws of a source are numbered 0, 1, 2, ... through the stretch, period after period.
//
// Immutable. Any number of threads.
class Stretch {
 public:
  // `period` has one slot per unit of weight. The slots must be spread if the arrangement is
  // `spread`.
  Stretch(std::shared_ptr<const Slots> period, Arrangement arrangement, std::int64_t length);

  Arrangement arrangement() const noexcept { return arrangement_; }
  std::int64_t period_size() const noexcept { return period_->size(); }

  // The slots of a period. The last period is the rest.
  const Slots& slots(std::int64_t period) const noexcept {
    return period < periods_ ? *period_ : rest_;
  }
  // The source's draws before a period, and in the whole stretch.
  std::int64_t draws_before(std::size_t source, std::int64_t period) const noexcept {
    return period * period_->owned(source);
  }
  std::int64_t draws(std::size_t source) const noexcept {
    return draws_before(source, periods_) + rest_.owned(source);
  }

 private:
  std::shared_ptr<const Slots> period_;
  Arrangement arrangement_;
  std::int64_t periods_;  // whole ones
  Slots rest_;
};

// Finds the draws at positions of an epoch that lie in a stretch. Fast for ascending positions. One
// thread. Does not own the stretch and the shuffle.
class DrawFinder {
 public:
  // The stretch begins at position `begin` of the epoch.
  DrawFinder(const Stretch& stretch, std::int64_t begin, const PeriodShuffle& shuffle) noexcept
      : stretch_(stretch),
        begin_(begin),
        shuffle_(shuffle),
        size_(stretch.period_size()),
        in_period_(shuffle.keys()) {}

  // Writes the source at each position, and the number of its draw.
  void find(const std::int64_t* positions, std::size_t count, std::uint16_t* sources,
            std::int64_t* draws) noexcept;

  // Calls visit(source, draw) for each of the positions [first, end).
  template <class Visit>
  void for_each(std::int64_t first, std::int64_t end, const Visit& visit) {
    std::int64_t positions[kLanes], draws[kLanes];
    std::uint16_t sources[kLanes];
    for (; first < end; first += static_cast<std::int64_t>(kLanes)) {
      const auto count = std::min(static_cast<std::size_t>(end - first), kLanes);
      std::iota(positions, positions + count, first);
      find(positions, count, sources, draws);
      for (std::size_t i = 0; i < count; ++i) visit(std::size_t{sources[i]}, draws[i]);
    }
  }

 private:
  std::int64_t enter(std::int64_t position) noexcept;
  void settle(std::size_t i, std::int64_t slot, std::uint16_t* sources,
              std::int64_t* draws) const noexcept;
  void find_lanes(const std::int64_t* positions, std::size_t first, std::size_t count,
                  std::uint16_t* sources, std::int64_t* draws) noexcept;

  const Stretch& stretch_;
  const std::int64_t begin_;
  const PeriodShuffle& shuffle_;
  const std::int64_t size_;
  std::int64_t period_ = 0;
  std::int64_t period_begin_ = 0;
  const Slots* slots_ = nullptr;
  std::uint64_t tweak_ = 0;
  std::uint16_t table_[kTableSlots];
  ManyPermutations in_period_;
};

}  // namespace tfrfast
