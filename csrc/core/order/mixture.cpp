#include "core/order/mixture.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/order/mixture_epoch.h"
#include "core/order/permutation.h"
#include "core/order/ranges.h"

namespace tfrfast {
namespace {

std::int64_t records_of(const std::vector<std::shared_ptr<const Order>>& sources) {
  check_range("the number of sources", static_cast<std::int64_t>(sources.size()), 1,
              static_cast<std::int64_t>(kMaxSources));
  std::int64_t records = 0;
  for (const auto& source : sources) {
    check_range("num_records", source->records(), 0, kMaxPermutationSize - records);
    records += source->records();
  }
  return records;
}

// Returns the sum of the weights of `source_count` sources. Weights may come from a state.
std::int64_t checked_period(const std::vector<std::int64_t>& weights, std::size_t source_count) {
  if (weights.size() != source_count) {
    refuse("the number of weights", static_cast<std::int64_t>(weights.size()),
           "that of the sources, which is " + std::to_string(source_count));
  }
  std::int64_t period = 0;
  for (const std::int64_t weight : weights) {
    check_range("a weight", weight, 0, kMaxPeriod);
    period += weight;
  }
  check_range("the sum of all weights", period, 1, kMaxPeriod);
  return period;
}

std::shared_ptr<const Slots> period_of(const std::vector<std::int64_t>& weights,
                                       Arrangement arrangement) {
  auto slots = std::make_shared<Slots>(weights);
  if (arrangement == Arrangement::spread) slots->spread(weights);
  return slots;
}

std::string joined(const std::vector<std::int64_t>& numbers, const char* separator) {
  std::string text;
  for (const std::int64_t number : numbers) {
    if (!text.empty()) text += separator;
    text += std::to_string(number);
  }
  return text;
}

constexpr auto code_mixture = [](auto& coder, auto& spec) {
  coder.list(spec.sources, [&](auto& source) { code_order(coder, source); });
  coder.named(spec.arrangement, [](Arrangement each) { return name_of(each); }, &arrangement_named);
  coder.flag(spec.repeats);
  coder.integer(spec.length);
  coder.integer(spec.unit_rows);
  coder.list(spec.segments, [&](auto& segment) {
    coder.number(segment.epoch);
    coder.integer(segment.position);
    coder.integers(segment.weights);
  });
};

}  // namespace

Mixture::Mixture(MixtureSpec spec)
    : Order(kName, spec.length, records_of(spec.sources)), spec_(std::move(spec)) {
  first_records_.push_back(0);
  for (const auto& source : spec_.sources) {
    first_records_.push_back(first_records_.back() + source->records());
    max_rows_ = std::max(max_rows_, source->max_rows());
  }
  check_segments();
  const std::int64_t units = spec_.length / spec_.unit_rows;
  for (const MixtureSpec::Segment& segment : spec_.segments) {
    const std::int64_t begin = segment.position / spec_.unit_rows;
    const auto period = period_of(segment.weights, spec_.arrangement);
    segments_.push_back({segment.epoch, begin, Stretch(period, spec_.arrangement, units - begin),
                         Stretch(period, spec_.arrangement, units)});
  }
  check_capacities();
}

void Mixture::check_segments() const {
  check_range("unit_rows", spec_.unit_rows, 1, kMaxUnitRows);
  check_range("length", spec_.length, 0, kMaxPermutationSize);
  if (spec_.length % spec_.unit_rows != 0) {
    refuse("length", spec_.length, "a multiple of " + std::to_string(spec_.unit_rows));
  }
  if (spec_.segments.empty() || spec_.segments[0].epoch != 0 || spec_.segments[0].position != 0) {
    throw Error(ErrorKind::invalid, "A mixture needs weights from position 0 of epoch 0 on.");
  }
  for (const auto& source : spec_.sources) {
    if (source->unit() != 1) {
      throw Error(ErrorKind::invalid, "The order of a source may not keep rows together.");
    }
    if ((source->max_rows() > 0) != (max_rows_ > 0)) {
      throw Error(ErrorKind::invalid,
                  "Either all sources of a mixture have batches as positions, or none has.");
    }
    if (!std::ranges::equal(source->tokens(), tokens())) {
      throw Error(ErrorKind::invalid, "All sources of a mixture have rows of as many tokens.");
    }
  }
  if (max_rows_ > 0 && spec_.unit_rows != 1) refuse("unit_rows", spec_.unit_rows, "1 for batches");
  std::int64_t slots = 0;
  const MixtureSpec::Segment* before = nullptr;
  for (const MixtureSpec::Segment& segment : spec_.segments) {
    if (segment.position != 0) {
      check_range("the position at which weights change", segment.position, 0, spec_.length - 1);
    }
    if (segment.position % spec_.unit_rows != 0) {
      refuse("the position at which weights change", segment.position,
             "a multiple of " + std::to_string(spec_.unit_rows));
    }
    if (before != nullptr &&
        std::pair(segment.epoch, segment.position) <= std::pair(before->epoch, before->position)) {
      throw Error(ErrorKind::invalid, "Each change of weights must come after the one before it.");
    }
    before = &segment;
    slots += checked_period(segment.weights, spec_.sources.size());
    for (std::size_t s = 0; s < segment.weights.size(); ++s) {
      if (segment.weights[s] > 0 && spec_.repeats && spec_.length > 0 &&
          spec_.sources[s]->positions() == 0) {
        throw Error(ErrorKind::invalid,
                    "Source " + std::to_string(s) + " has a weight, but no records.");
      }
    }
    if (slots <= kMaxPeriodSum) continue;
    throw Error(ErrorKind::invalid,
                "With all changes of its weights, this mixture has periods of " +
                    std::to_string(slots) + " records together, and at most " +
                    std::to_string(kMaxPeriodSum) +
                    " are allowed. Change the weights less often, or to rounder ones, whose "
                    "periods are shorter: 0.7 in place of 0.7001.");
  }
}

std::int64_t Mixture::capacity(std::size_t source) const noexcept {
  return spec_.sources[source]->positions() / spec_.unit_rows;
}

// If a change of weights interrupts a period, all draws of the period count, because the seed
// decides which draws come before the change.
void Mixture::check_capacities() const {
  if (spec_.repeats) return;
  std::vector<std::int64_t> before(spec_.sources.size());  // in the epoch where the segment begins
  for (std::size_t p = 0; p < segments_.size(); ++p) {
    const Segment& segment = segments_[p];
    if (p > 0) {
      const Segment& last = segments_[p - 1];
      const Stretch& stretch = last.in(segment.epoch);
      const std::int64_t at = segment.position - last.begin_in(segment.epoch);
      const std::int64_t period = at / stretch.period_size();
      for (std::size_t s = 0; s < before.size(); ++s) {
        if (last.epoch != segment.epoch) before[s] = 0;
        before[s] += stretch.draws_before(s, period);
        if (at % stretch.period_size() != 0) before[s] += stretch.slots(period).owned(s);
      }
    }
    for (std::size_t s = 0; s < before.size(); ++s) {
      const std::int64_t needed =
          std::max(before[s] + segment.first.draws(s), segment.whole.draws(s));
      if (needed <= capacity(s)) continue;
      throw Error(ErrorKind::invalid,
                  "Source " + std::to_string(s) + " has " +
                      std::to_string(spec_.sources[s]->positions()) +
                      " records, but an epoch needs " + std::to_string(needed * spec_.unit_rows) +
                      " of them. Make the epoch shorter with length=, or let sources repeat.");
    }
  }
}

Mixture::Wide Mixture::Segment::draws_before(std::size_t source, std::uint64_t of_epoch) const {
  if (of_epoch == epoch) return 0;
  return static_cast<Wide>(first.draws(source)) +
         static_cast<Wide>(of_epoch - epoch - 1) * static_cast<Wide>(whole.draws(source));
}

std::vector<Mixture::Beginning> Mixture::beginnings_after(std::uint64_t seed,
                                                          const std::vector<Beginning>& before,
                                                          const Segment& segment,
                                                          const Segment& next) const {
  const Stretch& stretch = segment.in(next.epoch);
  const std::int64_t begin = segment.begin_in(next.epoch);
  const std::int64_t period = (next.position - begin) / stretch.period_size();
  const std::int64_t in_period = (next.position - begin) % stretch.period_size();
  const Slots& slots = stretch.slots(period);
  const PeriodShuffle shuffle(seed, next.epoch);
  std::vector<bool> taken(static_cast<std::size_t>(slots.size()));
  DrawFinder(stretch, begin, shuffle)
      .for_each(next.position - in_period, next.position, [&](std::size_t s, std::int64_t draw) {
        const std::int64_t slot = slots.first(s) + draw - stretch.draws_before(s, period);
        taken[static_cast<std::size_t>(slot)] = true;
      });

  std::vector<Beginning> after(before.size());
  for (std::size_t s = 0; s < before.size(); ++s) {
    const Wide of_epoch = segment.draws_before(s, next.epoch);
    Beginning from = before[s];
    if (!spec_.repeats && next.epoch != segment.epoch) {  // each epoch has its own draws
      from.left_over.clear();
      from.next = static_cast<Wide>(next.epoch) * static_cast<Wide>(capacity(s)) - of_epoch;
    }
    Wide number = of_epoch + static_cast<Wide>(stretch.draws_before(s, period));
    after[s].drawn = from.drawn + number;
    if (in_period != 0) {
      for (std::int64_t i = 0; i < slots.owned(s); ++i, ++number) {
        if (taken[static_cast<std::size_t>(slots.first(s) + i)]) {
          ++after[s].drawn;
        } else {
          after[s].left_over.push_back(from.draw(number));
        }
      }
    }
    for (; number < from.left_over.size(); ++number) {
      after[s].left_over.push_back(from.draw(number));
    }
    after[s].next = from.draw(number);
  }
  return after;
}

std::shared_ptr<const Mixture::Beginnings> Mixture::beginnings(std::uint64_t seed) const {
  {
    const std::lock_guard lock(mutex_);
    if (remembered_.beginnings != nullptr && remembered_.seed == seed) {
      return remembered_.beginnings;
    }
  }
  auto all = std::make_shared<Beginnings>();
  all->emplace_back(spec_.sources.size());
  for (std::size_t p = 1; p < segments_.size(); ++p) {
    all->push_back(beginnings_after(seed, all->back(), segments_[p - 1], segments_[p]));
  }
  const std::lock_guard lock(mutex_);
  remembered_ = {seed, all};
  return all;
}

std::size_t Mixture::part_at(std::uint64_t epoch, std::int64_t position) const noexcept {
  std::size_t segment = segments_.size() - 1;
  while (std::pair(segments_[segment].epoch, segments_[segment].position) >
         std::pair(epoch, position))
    --segment;
  return segment;
}

std::vector<std::int64_t> Mixture::counts(std::uint64_t seed, std::uint64_t epoch,
                                          std::int64_t position) const {
  check_range("position", position, 0, positions());
  const auto all = beginnings(seed);
  const std::int64_t units = position / spec_.unit_rows;
  // At the very end of an epoch, the next epoch's weights do not apply yet.
  const std::size_t number = part_at(epoch, std::max<std::int64_t>(units - 1, 0));
  const Segment& segment = segments_[number];
  const Stretch& stretch = segment.in(epoch);
  const std::int64_t begin = segment.begin_in(epoch);
  const std::int64_t period = (units - begin) / stretch.period_size();
  std::vector<std::int64_t> draws(spec_.sources.size());
  for (std::size_t s = 0; s < draws.size(); ++s) draws[s] = stretch.draws_before(s, period);
  const PeriodShuffle shuffle(seed, epoch);
  DrawFinder(stretch, begin, shuffle)
      .for_each(begin + period * stretch.period_size(), units,
                [&](std::size_t s, std::int64_t) { ++draws[s]; });
  std::vector<std::int64_t> counts;
  std::int64_t broken_source = -1;
  if (position % spec_.unit_rows != 0) {
    std::int64_t one = position, record = 0;
    of_epoch(seed, epoch)->evaluate(&one, 1, &record);
    broken_source = std::upper_bound(first_records_.begin(), first_records_.end(), record) -
                    first_records_.begin() - 1;
  }
  for (std::size_t s = 0; s < spec_.sources.size(); ++s) {
    Wide count = (*all)[number][s].drawn + segment.draws_before(s, epoch);
    count += static_cast<Wide>(draws[s]);
    count *= static_cast<Wide>(spec_.unit_rows);
    if (broken_source == static_cast<std::int64_t>(s)) {
      count += static_cast<Wide>(position % spec_.unit_rows);
    }
    if (count > static_cast<Wide>(std::numeric_limits<std::int64_t>::max())) {
      throw Error(ErrorKind::invalid,
                  "So many records cannot be counted: epoch is " + std::to_string(epoch) + ".");
    }
    counts.push_back(static_cast<std::int64_t>(count));
  }
  return counts;
}

std::int64_t Mixture::longest_without_repeats(const std::vector<std::int64_t>& records,
                                              const std::vector<std::int64_t>& weights,
                                              std::int64_t unit_rows, std::int64_t max_length) {
  const std::int64_t period = checked_period(weights, records.size());
  std::int64_t periods = max_length / unit_rows / period;
  for (std::size_t s = 0; s < weights.size(); ++s) {
    if (weights[s] > 0) periods = std::min(periods, records[s] / unit_rows / weights[s]);
  }
  const std::int64_t most = std::min(max_length / unit_rows - periods * period, period - 1);
  const auto fits = [&](std::int64_t rest) {
    // The quotas' lower bounds are cheaper to compute than the quotas.
    for (std::size_t s = 0; s < weights.size(); ++s) {
      if (rest * weights[s] / period > records[s] / unit_rows - periods * weights[s]) return false;
    }
    const std::vector<std::int64_t> quotas = largest_remainders(weights, rest);
    for (std::size_t s = 0; s < weights.size(); ++s) {
      if (quotas[s] > records[s] / unit_rows - periods * weights[s]) return false;
    }
    return true;
  };
  std::int64_t rest = std::max<std::int64_t>(most, 0);
  while (rest > 0 && !fits(rest)) --rest;
  return (periods * period + rest) * unit_rows;
}

std::unique_ptr<const EpochOrder> Mixture::of_epoch(std::uint64_t seed, std::uint64_t epoch) const {
  return std::make_unique<const MixtureEpoch>(*this, seed, epoch);
}

std::string Mixture::describe_shuffle(std::uint64_t seed) const {
  std::string text = std::string("mixture=") + name_of(spec_.arrangement) +
                     " repeats=" + (spec_.repeats ? "yes" : "no") +
                     " length=" + std::to_string(spec_.length) +
                     " unit=" + std::to_string(spec_.unit_rows);
  for (const MixtureSpec::Segment& segment : spec_.segments) {
    text += " from=" + std::to_string(segment.epoch) + "/" + std::to_string(segment.position) +
            " weights=" + joined(segment.weights, ":");
  }
  return text + " seed=" + std::to_string(seed);
}

std::string Mixture::describe_records() const {
  std::string text = Order::describe_records();
  for (const auto& source : spec_.sources) {
    text += " (" + source->describe_shuffle(0) + " " + source->describe_records() + ")";
  }
  return text;
}

void Mixture::encode(Encoder& encoder) const {
  code_mixture(encoder, spec_);
}

std::shared_ptr<const Order> Mixture::decode(Decoder& decoder) {
  MixtureSpec spec;
  code_mixture(decoder, spec);
  return std::make_shared<const Mixture>(std::move(spec));
}

}  // namespace tfrfast
