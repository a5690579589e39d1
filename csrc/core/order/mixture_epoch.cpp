#include "core/order/mixture_epoch.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/order/permutation.h"

namespace tfrfast {
namespace {

constexpr std::size_t kBlockRows = 1024;

}  // namespace

// Some rows of a block, all from one source.
struct MixtureEpoch::SourceRows {
  const std::uint16_t* numbers;  // row numbers in the block
  std::size_t count;
  const std::int64_t* draws;  // by row of the block: the draw, in the run
  // by row of the block: the row in its unit; null if units have one row
  const std::int64_t* offsets;
};

MixtureEpoch::MixtureEpoch(const Mixture& mixture, std::uint64_t seed, std::uint64_t epoch)
    : mixture_(&mixture),
      epoch_(epoch),
      shuffle_(seed, epoch),
      beginnings_(mixture.beginnings(seed)),
      recent_(mixture.spec_.sources.size()) {
  const SipKey key = derive_key(KeyPurpose::sources, seed, 0);
  for (std::size_t s = 0; s < recent_.size(); ++s) seeds_.push_back(siphash(key, {s}));
  const std::int64_t units = mixture.spec_.length / mixture.spec_.unit_rows;
  for (std::size_t p = 0; p < mixture.segments_.size(); ++p) {
    const Mixture::Segment& segment = mixture.segments_[p];
    if (segment.epoch > epoch) break;
    const bool is_last = p + 1 == mixture.segments_.size();
    const std::int64_t begin = segment.begin_in(epoch);
    std::int64_t end = units;
    if (!is_last && mixture.segments_[p + 1].epoch < epoch) continue;
    if (!is_last && mixture.segments_[p + 1].epoch == epoch)
      end = mixture.segments_[p + 1].position;
    if (begin < end) add_run(segment, (*beginnings_)[p], begin, end);
  }
}

void MixtureEpoch::add_run(const Mixture::Segment& segment,
                           const std::vector<Mixture::Beginning>& beginnings, std::int64_t begin,
                           std::int64_t end) {
  WeightedRun run{begin, end, &segment.in(epoch_), segment.begin_in(epoch_), {}};
  for (std::size_t s = 0; s < recent_.size(); ++s) {
    Draws draws;
    if (mixture_->spec_.repeats || segment.epoch == epoch_) {
      draws.before = segment.draws_before(s, epoch_);
      draws.beginning = &beginnings[s];
      draws.has_left_over = draws.before < beginnings[s].left_over.size();
      if (!draws.has_left_over) draws.first = place_of(s, beginnings[s].draw(draws.before));
    } else {
      draws.first = {epoch_, 0};
    }
    run.draws.push_back(draws);
  }
  runs_.push_back(std::move(run));
}

MixtureEpoch::SourcePlace MixtureEpoch::place_of(std::size_t source, Wide draw) const noexcept {
  const MixtureSpec& spec = mixture_->spec_;
  const std::int64_t rows = spec.repeats ? spec.unit_rows : 1;
  const std::int64_t size =
      spec.repeats ? spec.sources[source]->positions() : mixture_->capacity(source);
  if (size == 0) return {};  // weight 0: never drawn from
  const Wide place = draw * static_cast<Wide>(rows);
  const auto position = static_cast<std::int64_t>(place % static_cast<Wide>(size));
  return {static_cast<std::uint64_t>(place / static_cast<Wide>(size)),
          spec.repeats ? position : position * spec.unit_rows};
}

MixtureEpoch::SourcePlace MixtureEpoch::place_in(const WeightedRun& run, std::size_t source,
                                                 std::int64_t draw) const noexcept {
  const Draws& draws = run.draws[source];
  if (draws.has_left_over) {
    return place_of(source, draws.beginning->draw(draws.before + static_cast<Wide>(draw)));
  }
  return {draws.first.epoch, draws.first.position + draw * mixture_->spec_.unit_rows};
}

std::shared_ptr<const EpochOrder> MixtureEpoch::order_of(std::size_t source,
                                                         std::uint64_t epoch) const {
  {
    const std::lock_guard lock(mutex_);
    const Recent& recent = recent_[source];
    if (recent.order != nullptr && recent.epoch == epoch) return recent.order;
  }
  std::shared_ptr<const EpochOrder> order =
      mixture_->spec_.sources[source]->of_epoch(seeds_[source], epoch);
  const std::lock_guard lock(mutex_);
  recent_[source] = {epoch, order};
  return order;
}

void MixtureEpoch::evaluate_source(const WeightedRun& run, std::size_t source,
                                   const SourceRows& rows, std::int64_t* out) const {
  const std::int64_t size = mixture_->spec_.sources[source]->positions();
  const std::int64_t first_record = mixture_->first_records_[source];
  std::int64_t positions[kBlockRows];
  std::uint64_t epochs[kBlockRows];
  const Draws& draws = run.draws[source];
  if (!draws.has_left_over && rows.offsets == nullptr) {  // the usual case
    std::int64_t last = 0;
    for (std::size_t i = 0; i < rows.count; ++i) {
      positions[i] = draws.first.position + rows.draws[rows.numbers[i]];
      last = std::max(last, positions[i]);
    }
    if (last < size) {
      const auto order = order_of(source, draws.first.epoch);
      order->evaluate(positions, rows.count, positions);
      for (std::size_t i = 0; i < rows.count; ++i) {
        out[rows.numbers[i]] = first_record + positions[i];
      }
      return;
    }
  }
  bool all_in_one = true;
  for (std::size_t i = 0; i < rows.count; ++i) {
    const std::uint16_t row = rows.numbers[i];
    SourcePlace place = place_in(run, source, rows.draws[row]);
    if (rows.offsets != nullptr) place.position += rows.offsets[row];
    if (place.position >= size) {  // the place is in a later epoch of the source
      place.epoch += static_cast<std::uint64_t>(place.position / size);
      place.position %= size;
    }
    positions[i] = place.position;
    epochs[i] = place.epoch;
    all_in_one = all_in_one && place.epoch == epochs[0];
  }
  if (all_in_one) {
    order_of(source, epochs[0])->evaluate(positions, rows.count, positions);
    for (std::size_t i = 0; i < rows.count; ++i) {
      out[rows.numbers[i]] = first_record + positions[i];
    }
    return;
  }
  std::uint16_t sorted[kBlockRows];
  std::iota(sorted, sorted + rows.count, std::uint16_t{0});
  std::stable_sort(sorted, sorted + rows.count,
                   [&](std::uint16_t a, std::uint16_t b) { return epochs[a] < epochs[b]; });
  std::int64_t together[kBlockRows];
  for (std::size_t begin = 0; begin < rows.count;) {
    const std::uint64_t epoch = epochs[sorted[begin]];
    std::size_t end = begin;
    for (; end < rows.count && epochs[sorted[end]] == epoch; ++end) {
      together[end] = positions[sorted[end]];
    }
    order_of(source, epoch)->evaluate(together + begin, end - begin, together + begin);
    begin = end;
  }
  for (std::size_t i = 0; i < rows.count; ++i) {
    out[rows.numbers[sorted[i]]] = first_record + together[i];
  }
}

void MixtureEpoch::evaluate_block(const WeightedRun& run, const std::int64_t* positions,
                                  std::size_t count, std::int64_t* out) const {
  const std::int64_t unit = mixture_->spec_.unit_rows;
  const std::size_t source_count = recent_.size();
  std::int64_t units[kBlockRows], draws[kBlockRows], offsets[kBlockRows];
  std::uint16_t sources[kBlockRows], sorted[kBlockRows], ends[kMaxSources + 1];
  const bool rows_are_units = unit == 1;
  if (!rows_are_units) {
    for (std::size_t i = 0; i < count; ++i) {
      units[i] = positions[i] / unit;
      offsets[i] = positions[i] % unit;
    }
  }
  finder_in(run).find(rows_are_units ? positions : units, count, sources, draws);

  // Go source by source, so that each permutation is evaluated for many rows at a time.
  std::fill_n(ends, source_count + 1, std::uint16_t{0});
  for (std::size_t i = 0; i < count; ++i) ++ends[sources[i] + 1];
  for (std::size_t s = 0; s < source_count; ++s)
    ends[s + 1] = static_cast<std::uint16_t>(ends[s + 1] + ends[s]);
  for (std::size_t i = 0; i < count; ++i)
    sorted[ends[sources[i]]++] = static_cast<std::uint16_t>(i);
  std::size_t begin = 0;
  for (std::size_t s = 0; s < source_count; ++s) {
    const std::size_t end = ends[s];
    const SourceRows rows{sorted + begin, end - begin, draws, rows_are_units ? nullptr : offsets};
    if (begin < end) evaluate_source(run, s, rows, out);
    begin = end;
  }
}

const MixtureEpoch::WeightedRun& MixtureEpoch::run_at(std::int64_t unit) const noexcept {
  std::size_t number = 0;
  while (unit >= runs_[number].end) ++number;
  return runs_[number];
}

MixtureEpoch::SourceBatch MixtureEpoch::batch_at(std::int64_t position) const {
  const WeightedRun& run = run_at(position);
  std::uint16_t source = 0;
  std::int64_t draw = 0;
  finder_in(run).find(&position, 1, &source, &draw);
  const SourcePlace place = place_in(run, source, draw);
  const std::int64_t size = mixture_->spec_.sources[source]->positions();
  const std::uint64_t epoch = place.epoch + static_cast<std::uint64_t>(place.position / size);
  return {source, order_of(source, epoch), place.position % size};
}

void MixtureEpoch::add_rows(std::span<const std::int64_t> positions, std::uint32_t first_row,
                            std::vector<PackedRecord>& rows) const {
  for (const std::int64_t position : positions) {
    const SourceBatch batch = batch_at(position);
    std::size_t next = rows.size();
    batch.order->add_rows({&batch.position, 1}, first_row++, rows);
    for (; next < rows.size(); ++next) {
      rows[next].record += mixture_->first_records_[batch.source];
    }
  }
}

void MixtureEpoch::evaluate(const std::int64_t* positions, std::size_t count,
                            std::int64_t* out) const {
  const std::int64_t unit = mixture_->spec_.unit_rows;
  for (std::size_t done = 0; done < count;) {
    const WeightedRun& run = run_at(positions[done] / unit);
    const std::int64_t begin = run.begin * unit, end = run.end * unit;
    std::size_t rows = 1;
    while (rows < kBlockRows && done + rows < count && positions[done + rows] >= begin &&
           positions[done + rows] < end) {
      ++rows;
    }
    evaluate_block(run, positions + done, rows, out + done);
    done += rows;
  }
}

}  // namespace tfrfast
