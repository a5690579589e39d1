#include "core/order/slots.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

namespace tfrfast {
namespace {

// A source that waits for its next position. Equal waits are ordered by source.
struct Waiting {
  std::int64_t numerator;  // the waiting time, as a fraction
  std::int64_t denominator;
  std::size_t source;

  bool operator>(const Waiting& other) const noexcept {
    const std::int64_t mine = numerator * other.denominator;
    const std::int64_t others = other.numerator * denominator;
    return mine != others ? mine > others : source > other.source;
  }
};
using Earliest = std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>>;

}  // namespace

Slots::Slots(std::vector<std::int64_t> owned) : owned_(std::move(owned)) {
  first_.reserve(owned_.size() + 1);
  first_.push_back(0);
  for (const std::int64_t slots : owned_) first_.push_back(first_.back() + slots);
  source_of_.reserve(static_cast<std::size_t>(size()));
  for (std::size_t source = 0; source < owned_.size(); ++source) {
    source_of_.insert(source_of_.end(), static_cast<std::size_t>(owned_[source]),
                      static_cast<std::uint16_t>(source));
  }
}

// Tijdeman's chairman assignment. With S sources and d = 1 / (2 S - 2), a source may take its slot
// number j once its share is j + d, and should take the slot before its share is j + 1 - d. Among
// the sources that may take a position, the source with the earliest deadline takes it. In a whole
// period, no source is ever further than 1 - d from its share.
void Slots::spread(std::span<const std::int64_t> weights) {
  const std::int64_t period = std::accumulate(weights.begin(), weights.end(), std::int64_t{0});
  const auto sharing = std::count_if(weights.begin(), weights.end(), [](auto w) { return w > 0; });
  const std::int64_t twice = std::max<std::int64_t>(2 * (sharing - 1), 1);  // 1 / d
  std::vector<std::int64_t> taken(sources());
  Earliest early, ready;
  // Times are in units of period / twice.
  const auto wait = [&](std::size_t source) {
    if (taken[source] == owned_[source]) return;
    early.push({taken[source] * twice + 1, weights[source], source});
  };
  for (std::size_t source = 0; source < sources(); ++source) wait(source);
  slot_at_.reserve(source_of_.size());
  for (std::int64_t position = 0; position < size(); ++position) {
    // In a partial period, possibly no source may take the position. Then the next source does.
    while (!early.empty() &&
           (ready.empty() ||
            static_cast<__int128>(early.top().numerator) * period <=
                static_cast<__int128>(position + 1) * twice * early.top().denominator)) {
      const std::size_t source = early.top().source;
      early.pop();
      ready.push({(taken[source] + 1) * twice - 1, weights[source], source});
    }
    const std::size_t source = ready.top().source;
    ready.pop();
    slot_at_.push_back(static_cast<std::uint32_t>(first_[source] + taken[source]++));
    wait(source);
  }
}

std::vector<std::int64_t> largest_remainders(std::span<const std::int64_t> weights,
                                             std::int64_t count) {
  const std::int64_t period = std::accumulate(weights.begin(), weights.end(), std::int64_t{0});
  std::vector<std::int64_t> slots(weights.size());
  std::vector<std::pair<std::int64_t, std::size_t>> remainders;
  std::int64_t left = count;
  for (std::size_t source = 0; source < weights.size(); ++source) {
    slots[source] = count * weights[source] / period;
    left -= slots[source];
    remainders.emplace_back(-(count * weights[source] % period), source);
  }
  std::sort(remainders.begin(), remainders.end());
  for (std::int64_t i = 0; i < left; ++i) ++slots[remainders[static_cast<std::size_t>(i)].second];
  return slots;
}

}  // namespace tfrfast
