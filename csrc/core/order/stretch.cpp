#include "core/order/stretch.h"

#include <utility>

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
      length_(length),
      periods_(length / period_->size()),
      rest_(largest_remainders(weights_of(*period_), length % period_->size())) {
  if (arrangement == Arrangement::spread) rest_.spread(weights_of(*period_));
}

std::vector<bool> Stretch::slots_before(const PeriodShuffle& shuffle, std::int64_t begin,
                                        std::int64_t period, std::int64_t position) const {
  const Slots& slots = this->slots(period);
  std::vector<bool> before(static_cast<std::size_t>(slots.size()));
  if (arrangement_ == Arrangement::spread) {
    for (std::int64_t i = 0; i < position; ++i) {
      before[static_cast<std::size_t>(slots.slot_at(i))] = true;
    }
    return before;
  }
  std::vector<std::uint32_t> first(static_cast<std::size_t>(position));
  shuffle.first_slots(shuffle.tweak(begin, period), period_size(), slots.size(), position,
                      first.data());
  for (const std::uint32_t slot : first) before[slot] = true;
  return before;
}

std::vector<std::int64_t> Stretch::draws_before_position(const PeriodShuffle& shuffle,
                                                         std::int64_t begin,
                                                         std::int64_t position) const {
  const std::int64_t period = position / period_size();
  const std::int64_t in_period = position % period_size();
  const Slots& slots = this->slots(period);
  std::vector<std::int64_t> draws(slots.sources());
  for (std::size_t s = 0; s < draws.size(); ++s) draws[s] = draws_before(s, period);
  if (in_period == 0) return draws;
  if (arrangement_ == Arrangement::spread) {
    for (std::size_t s = 0; s < draws.size(); ++s) draws[s] += slots.owned_before(s, in_period);
    return draws;
  }
  std::vector<std::uint32_t> first(static_cast<std::size_t>(in_period));
  shuffle.first_slots(shuffle.tweak(begin, period), period_size(), slots.size(), in_period,
                      first.data());
  for (const std::uint32_t slot : first) ++draws[slots.source(slot)];
  return draws;
}

}  // namespace tfrfast
