#include "core/order/interleaved_order.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

#include "core/order/permutation.h"
#include "core/order/ranges.h"
#include "core/order/siphash.h"

namespace tfrfast {
namespace {

constexpr std::size_t kMinChangesBetweenMilestones = 64;

std::int64_t sum_of(const std::vector<std::int64_t>& file_records) {
  std::int64_t sum = 0;
  for (const std::int64_t records : file_records) {
    check_range("the number of a file's records", records, 0, kMaxPermutationSize - sum);
    sum += records;
  }
  return sum;
}

}  // namespace

// Moves from one SameLaps to the next. Rising positions make the moves cheap.
class InterleavedOrder::Epoch final : public EpochOrder {
 public:
  explicit Epoch(const InterleavedOrder& order) noexcept : order_(order) {}

  void evaluate(const std::int64_t* positions, std::size_t count,
                std::int64_t* out) const override {
    std::size_t at = order_.same_laps_.size();  // none
    std::vector<Active> active;
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t position = positions[i];
      const std::size_t wanted = same_laps_at(position, at);
      if (wanted != at) move(active, at, wanted);
      at = wanted;
      const SameLaps& laps = order_.same_laps_[at];
      const std::int64_t passed = position - laps.position;
      const std::int64_t lap = laps.lap + passed / laps.lap_records;
      std::int64_t within = passed % laps.lap_records;
      const Active& slot = slot_with(active, laps, within);
      out[i] = slot.first + (lap - slot.lap) * order_.block_records_ + within;
    }
  }

 private:
  // Returns the slot that gives record `within` of a lap, and sets `within` to the record's place
  // in the block.
  const Active& slot_with(const std::vector<Active>& active, const SameLaps& laps,
                          std::int64_t& within) const {
    const std::int64_t block = order_.block_records_;
    if (laps.lap_records == static_cast<std::int64_t>(active.size()) * block) {
      const Active& slot = active[static_cast<std::size_t>(within / block)];
      within %= block;
      return slot;
    }
    auto slot = active.begin();  // a lap with short blocks
    for (; within >= slot->records; ++slot) within -= slot->records;
    return *slot;
  }

  std::size_t same_laps_at(std::int64_t position, std::size_t at) const {
    const std::vector<SameLaps>& all = order_.same_laps_;
    if (at < all.size() && all[at].position <= position &&
        (at + 1 == all.size() || position < all[at + 1].position)) {
      return at;
    }
    const auto after = std::upper_bound(
        all.begin(), all.end(), position,
        [](std::int64_t wanted, const SameLaps& each) { return wanted < each.position; });
    return static_cast<std::size_t>(after - all.begin()) - 1;
  }

  void move(std::vector<Active>& active, std::size_t from, std::size_t to) const {
    const auto after = std::upper_bound(
        order_.milestones_.begin(), order_.milestones_.end(), to,
        [](std::size_t wanted, const Milestone& each) { return wanted < each.laps; });
    const Milestone& milestone = *(after - 1);
    if (from > to || from < milestone.laps) {
      active = milestone.active;
      from = milestone.laps;
    }
    order_.change(active, order_.same_laps_[from].changes_end, order_.same_laps_[to].changes_end);
  }

  const InterleavedOrder& order_;
};

InterleavedOrder::InterleavedOrder(std::vector<std::int64_t> file_records, std::int64_t slots,
                                   std::int64_t block_records)
    : Order(sum_of(file_records), sum_of(file_records)),
      file_records_(std::move(file_records)),
      slots_(slots),
      // Larger blocks make no difference: no file has more records than all files together.
      block_records_(std::min(block_records, std::max<std::int64_t>(1, records()))) {
  if (slots < 1) refuse("the number of interleaved files", slots, "1 or more");
  if (block_records < 1) refuse("the number of records of a block", block_records, "1 or more");
  add_changes();
  add_same_laps();
}

void InterleavedOrder::add_changes() {
  using Place = std::pair<std::int64_t, std::int64_t>;  // lap and slot
  std::priority_queue<Place, std::vector<Place>, std::greater<>> empty;
  const auto files = static_cast<std::int64_t>(file_records_.size());
  for (std::int64_t slot = 0; slot < std::min(slots_, files); ++slot) empty.push({0, slot});
  std::int64_t first = 0;  // record of the file
  for (const std::int64_t records : file_records_) {
    const auto [lap, slot] = empty.top();
    empty.pop();
    const std::int64_t whole = records / block_records_, rest = records % block_records_;
    if (whole > 0) add_laps({slot, lap, first, block_records_}, whole);
    if (rest > 0) add_laps({slot, lap + whole, first + whole * block_records_, rest}, 1);
    empty.push({lap + whole + 1, slot});
    first += records;
  }
  // At one lap, a slot's end comes before the slot's next beginning.
  std::sort(changes_.begin(), changes_.end(), [](const Change& a, const Change& b) {
    return std::tie(a.lap, a.active.slot, a.begins) < std::tie(b.lap, b.active.slot, b.begins);
  });
}

void InterleavedOrder::add_laps(const Active& active, std::int64_t laps) {
  changes_.push_back({active.lap, active, true});
  changes_.push_back({active.lap + laps, active, false});
}

void InterleavedOrder::add_same_laps() {
  std::vector<Active> active;
  std::int64_t position = 0;
  std::size_t milestone_end = 0;  // of the changes
  for (std::size_t begin = 0; begin < changes_.size();) {
    std::size_t end = begin;
    const std::int64_t lap = changes_[begin].lap;
    while (end < changes_.size() && changes_[end].lap == lap) ++end;
    change(active, begin, end);
    begin = end;
    if (active.empty()) continue;  // every slot skips this lap
    if (milestones_.empty() ||
        end - milestone_end >= std::max(kMinChangesBetweenMilestones, active.size())) {
      milestones_.push_back({same_laps_.size(), active});
      milestone_end = end;
    }
    std::int64_t lap_records = 0;
    for (const Active& each : active) lap_records += each.records;
    same_laps_.push_back({lap, position, lap_records, end});
    const std::int64_t laps = changes_[end].lap - lap;  // each slot that begins also ends
    position += laps * lap_records;
  }
}

void InterleavedOrder::change(std::vector<Active>& active, std::size_t begin,
                              std::size_t end) const {
  for (std::size_t i = begin; i < end; ++i) {
    const Change& change = changes_[i];
    const auto at =
        std::lower_bound(active.begin(), active.end(), change.active.slot,
                         [](const Active& each, std::int64_t slot) { return each.slot < slot; });
    if (change.begins) {
      active.insert(at, change.active);
    } else {
      active.erase(at);
    }
  }
}

std::shared_ptr<const Order> InterleavedOrder::decode(Decoder& decoder) {
  const std::int64_t slots = decoder.integer();
  const std::int64_t block_records = decoder.integer();
  return std::make_shared<const InterleavedOrder>(decoder.integers(), slots, block_records);
}

void InterleavedOrder::encode(Encoder& encoder) const {
  encoder.integer(slots_);
  encoder.integer(block_records_);
  encoder.integers(file_records_);
}

std::unique_ptr<const EpochOrder> InterleavedOrder::of_epoch(std::uint64_t, std::uint64_t) const {
  return std::make_unique<const Epoch>(*this);
}

std::shared_ptr<const Order> InterleavedOrder::over(std::int64_t records) const {
  refuse("the number of records of interleaved files", records,
         "the sum of the files' records, which is " + std::to_string(this->records()));
}

std::shared_ptr<const Order> InterleavedOrder::over_files(const std::vector<std::int64_t>& firsts,
                                                          std::int64_t records) const {
  if (records != firsts.back()) over(records);  // throws for the wrong number of records
  std::vector<std::int64_t> file_records;
  for (std::size_t i = 1; i < firsts.size(); ++i) file_records.push_back(firsts[i] - firsts[i - 1]);
  if (file_records == file_records_) return nullptr;
  return std::make_shared<const InterleavedOrder>(std::move(file_records), slots_, block_records_);
}

std::string InterleavedOrder::describe_shuffle(std::uint64_t) const {
  SipHash hash(SipKey{});
  for (const std::int64_t records : file_records_) hash.add(static_cast<std::uint64_t>(records));
  std::string turns = std::to_string(slots_);
  if (block_records_ != 1) turns += "x" + std::to_string(block_records_);
  return "shuffle=none interleaved=" + turns + ":" + std::to_string(hash.finish());
}

}  // namespace tfrfast
