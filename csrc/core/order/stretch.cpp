#include "core/order/stretch.h"

#include <utility>
#include <vector>

#include "core/base/choice.h"

namespace tfrfast {
namespace {

// In the order of the enum.
constexpr Choice<Arrangement> kArrangements[] = {{"permuted", Arrangement::permuted},
                                                 {"spread", Arrangement::spread}};

std::vector<std::int64_t> weights_of(const Slots& period) {
  std::vector<std::int64_t> weights(period.sources());
  for (std::size_t s = 0; s < weights.size(); ++s) weights[s] = period.owned(s);
  return weights;
}

}  // namespace

const char* name_of(Arrangement arrangement) noexcept {
  return kArrangements[static_cast<std::size_t>(arrangement)].name;
}

Arrangement arrangement_named(std::string_view name) {
  return choose("order", name, kArrangements);
}

Stretch::Stretch(std::shared_ptr<const Slots> period, Arrangement arrangement, std::int64_t length)
    : period_(std::move(period)),
      arrangement_(arrangement),
      periods_(length / period_->size()),
      rest_(largest_remainders(weights_of(*period_), length % period_->size())) {
  if (arrangement == Arrangement::spread) rest_.spread(weights_of(*period_));
}

void DrawFinder::find(const std::int64_t* positions, std::size_t count, std::uint16_t* sources,
                      std::int64_t* draws) noexcept {
  if (stretch_.arrangement() == Arrangement::spread) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t at = enter(positions[i]);
      settle(i, slots_->slot_at(at), sources, draws);
    }
  } else if (size_ <= kTableSlots) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t at = enter(positions[i]);
      settle(i, table_[at], sources, draws);
    }
  } else {
    for (std::size_t done = 0; done < count; done += kLanes) {
      find_lanes(positions + done, done, std::min(count - done, kLanes), sources, draws);
    }
  }
}

// Enters the position's period, and returns the position's place in the period.
inline std::int64_t DrawFinder::enter(std::int64_t position) noexcept {
  const std::int64_t at = position - begin_;
  const std::int64_t in_period = at - period_begin_;
  if (slots_ != nullptr && in_period >= 0 && in_period < size_) return in_period;
  if (slots_ != nullptr && in_period >= size_ && in_period < 2 * size_) {
    ++period_;
    period_begin_ += size_;
  } else {
    period_ = at / size_;
    period_begin_ = period_ * size_;
  }
  slots_ = &stretch_.slots(period_);
  if (stretch_.arrangement() == Arrangement::permuted) {
    tweak_ = shuffle_.tweak(begin_, period_);
    if (size_ <= kTableSlots) PeriodShuffle::shuffle(tweak_, slots_->size(), table_);
  }
  return at - period_begin_;
}

inline void DrawFinder::settle(std::size_t i, std::int64_t slot, std::uint16_t* sources,
                               std::int64_t* draws) const noexcept {
  const std::size_t source = slots_->source(slot);
  sources[i] = static_cast<std::uint16_t>(source);
  draws[i] = stretch_.draws_before(source, period_) + slot - slots_->first(source);
}

void DrawFinder::find_lanes(const std::int64_t* positions, std::size_t first, std::size_t count,
                            std::uint16_t* sources, std::int64_t* draws) noexcept {
  std::int64_t periods[kLanes];
  in_period_.clear();
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t at = enter(positions[i]);
    periods[i] = period_;
    in_period_.add(slots_->size(), tweak_, at);
  }
  in_period_.run();
  for (std::size_t i = 0; i < count; ++i) {
    period_ = periods[i];
    period_begin_ = period_ * size_;
    slots_ = &stretch_.slots(period_);
    settle(first + i, in_period_.result(i), sources, draws);
  }
  slots_ = nullptr;  // tweak_ may belong to another period
}

}  // namespace tfrfast
