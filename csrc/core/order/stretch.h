// A stretch of positions that the sources of a mixture share by weight.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

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

  std::int64_t length() const noexcept { return length_; }
  Arrangement arrangement() const noexcept { return arrangement_; }
  std::int64_t period_size() const noexcept { return period_->size(); }
  std::int64_t periods() const noexcept { return periods_; }  // number of whole periods

  // The slots of a period. Period periods() is the rest.
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

  // Marks the slots of a period that stand before `position`. The stretch begins at position
  // `begin`.
  std::vector<bool> slots_before(const PeriodShuffle& shuffle, std::int64_t begin,
                                 std::int64_t period, std::int64_t position) const;
  // Counts each source's draws before a position of the stretch.
  std::vector<std::int64_t> draws_before_position(const PeriodShuffle& shuffle, std::int64_t begin,
                                                  std::int64_t position) const;

 private:
  std::shared_ptr<const Slots> period_;
  Arrangement arrangement_;
  std::int64_t length_;
  std::int64_t periods_;
  Slots rest_;
};

}  // namespace tfrfast
