// A stretch of positions that the sources of a mixture share by their weights.
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
  permuted,  // in each period, any order of the slots
  spread,    // in every period the same order, as even as can be
};
const char* name_of(Arrangement arrangement) noexcept;
Arrangement arrangement_named(std::string_view name);  // throws Error(invalid)

// Whole periods, then a rest of which each source gets its quota by largest remainders. In a
// stretch, each source has draws 0, 1, 2, ...: those of the first period, those of the second.
//
// Immutable, any number of threads.
class Stretch {
 public:
  // `period` has a slot for each unit of weight, spread if the arrangement is.
  Stretch(std::shared_ptr<const Slots> period, Arrangement arrangement, std::int64_t length);

  std::int64_t length() const noexcept { return length_; }
  Arrangement arrangement() const noexcept { return arrangement_; }
  std::int64_t period_size() const noexcept { return period_->size(); }
  std::int64_t periods() const noexcept { return periods_; }  // whole ones

  // The slots of a period. The one after the last whole period is the rest.
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

  // In a period: which slots stand before `position`, marked. `begin` is where the stretch begins.
  std::vector<bool> slots_before(const PeriodShuffle& shuffle, std::int64_t begin,
                                 std::int64_t period, std::int64_t position) const;
  // How many draws each source has had before a position of the stretch.
  std::vector<std::int64_t> draws_before_position(const PeriodShuffle& shuffle, std::int64_t begin,
                                                  std::int64_t position) const;
  // The position of the stretch at which the source's draw comes that `earlier` others precede.
  std::int64_t position_of(const PeriodShuffle& shuffle, std::int64_t begin, std::size_t source,
                           std::int64_t earlier) const;

 private:
  std::shared_ptr<const Slots> period_;
  Arrangement arrangement_;
  std::int64_t length_;
  std::int64_t periods_;
  Slots rest_;
};

}  // namespace tfrfast
