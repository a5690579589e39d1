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

// The laps of files in one order. Immutable.
class InterleavedOrder::Laps {
 public:
  // A slot that gives blocks of `records` records. Its first block comes in lap `lap` and begins
  // with record `first`.
  struct Active {
    std::int64_t slot = 0;
    std::int64_t lap = 0;
    std::int64_t first = 0;
    std::int64_t records = 0;
  };
  // A slot begins to give records, or has given the last record of its file.
  struct Change {
    std::int64_t lap = 0;
    Active active;
    bool begins = false;
  };
  // The laps in which the same slots give records. Ends where the next SameLaps begins.
  struct SameLaps {
    std::int64_t lap = 0;
    std::int64_t position = 0;
    std::int64_t lap_records = 0;
    // End of the changes that lead from the previous SameLaps to this one.
    std::size_t changes_end = 0;
  };
  // The slots that give records in some of the SameLaps. The slots of any other SameLaps are
  // computed from the last milestone before it. Milestones are so few that they take no more memory
  // than the changes.
  struct Milestone {
    std::size_t laps = 0;
    std::vector<Active> active;
  };
  struct File {
    std::int64_t first = 0;
    std::int64_t records = 0;
  };

  static std::vector<File> files_of(const std::vector<std::int64_t>& file_records);

  Laps(const std::vector<File>& files, std::int64_t slots, std::int64_t block_records);

  std::int64_t block_records() const noexcept { return block_records_; }
  const std::vector<SameLaps>& same_laps() const noexcept { return same_laps_; }
  const std::vector<Milestone>& milestones() const noexcept { return milestones_; }
  // Makes the changes from `begin` to `end`.
  void change(std::vector<Active>& active, std::size_t begin, std::size_t end) const;

 private:
  void add_changes(const std::vector<File>& files, std::int64_t slots);
  void add_laps(const Active& active, std::int64_t laps);
  void add_same_laps();

  std::int64_t block_records_;
  std::vector<Change> changes_;
  std::vector<SameLaps> same_laps_;
  std::vector<Milestone> milestones_;
};

InterleavedOrder::Laps::Laps(const std::vector<File>& files, std::int64_t slots,
                             std::int64_t block_records)
    : block_records_(block_records) {
  add_changes(files, slots);
  add_same_laps();
}

std::vector<InterleavedOrder::Laps::File> InterleavedOrder::Laps::files_of(
    const std::vector<std::int64_t>& file_records) {
  std::vector<File> files;
  files.reserve(file_records.size());
  std::int64_t first = 0;
  for (const std::int64_t records : file_records) {
    files.push_back({first, records});
    first += records;
  }
  return files;
}

void InterleavedOrder::Laps::add_changes(const std::vector<File>& files, std::int64_t slots) {
  using Place = std::pair<std::int64_t, std::int64_t>;  // lap and slot
  std::priority_queue<Place, std::vector<Place>, std::greater<>> empty;
  const std::int64_t used = std::min(slots, static_cast<std::int64_t>(files.size()));
  for (std::int64_t slot = 0; slot < used; ++slot) empty.push({0, slot});
  for (const auto& [first, records] : files) {
    const auto [lap, slot] = empty.top();
    empty.pop();
    const std::int64_t whole = records / block_records_, rest = records % block_records_;
    if (whole > 0) add_laps({slot, lap, first, block_records_}, whole);
    if (rest > 0) add_laps({slot, lap + whole, first + whole * block_records_, rest}, 1);
    empty.push({lap + whole + 1, slot});
  }
  // At one lap, a slot's end comes before the slot's next beginning.
  std::sort(changes_.begin(), changes_.end(), [](const Change& a, const Change& b) {
    return std::tie(a.lap, a.active.slot, a.begins) < std::tie(b.lap, b.active.slot, b.begins);
  });
}

void InterleavedOrder::Laps::add_laps(const Active& active, std::int64_t laps) {
  changes_.push_back({active.lap, active, true});
  changes_.push_back({active.lap + laps, active, false});
}

void InterleavedOrder::Laps::add_same_laps() {
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

void InterleavedOrder::Laps::change(std::vector<Active>& active, std::size_t begin,
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

// Moves from one SameLaps to the next. Rising positions make the moves cheap.
class InterleavedOrder::Epoch final : public EpochOrder {
 public:
  using Active = Laps::Active;
  using SameLaps = Laps::SameLaps;

  explicit Epoch(std::shared_ptr<const Laps> laps) noexcept : laps_(std::move(laps)) {}

  void evaluate(const std::int64_t* positions, std::size_t count,
                std::int64_t* out) const override {
    std::size_t at = laps_->same_laps().size();  // none
    std::vector<Active> active;
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t position = positions[i];
      const std::size_t wanted = same_laps_at(position, at);
      if (wanted != at) move(active, at, wanted);
      at = wanted;
      const SameLaps& laps = laps_->same_laps()[at];
      const std::int64_t passed = position - laps.position;
      const std::int64_t lap = laps.lap + passed / laps.lap_records;
      std::int64_t within = passed % laps.lap_records;
      const Active& slot = slot_with(active, laps, within);
      out[i] = slot.first + (lap - slot.lap) * laps_->block_records() + within;
    }
  }

 private:
  // Returns the slot that gives record `within` of a lap, and sets `within` to the record's place
  // in the block.
  const Active& slot_with(const std::vector<Active>& active, const SameLaps& laps,
                          std::int64_t& within) const {
    const std::int64_t block = laps_->block_records();
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
    const std::vector<SameLaps>& all = laps_->same_laps();
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
        laps_->milestones().begin(), laps_->milestones().end(), to,
        [](std::size_t wanted, const Laps::Milestone& each) { return wanted < each.laps; });
    const Laps::Milestone& milestone = *(after - 1);
    if (from > to || from < milestone.laps) {
      active = milestone.active;
      from = milestone.laps;
    }
    laps_->change(active, laps_->same_laps()[from].changes_end, laps_->same_laps()[to].changes_end);
  }

  std::shared_ptr<const Laps> laps_;
};

InterleavedOrder::InterleavedOrder(std::vector<std::int64_t> file_records, std::int64_t slots,
                                   std::int64_t block_records, bool shuffles_files)
    : Order(kName, sum_of(file_records), sum_of(file_records)),
      file_records_(std::move(file_records)),
      slots_(slots),
      // Larger blocks make no difference: no file has more records than all files together.
      block_records_(std::min(block_records, std::max<std::int64_t>(1, records()))),
      shuffles_files_(shuffles_files) {
  if (slots < 1) refuse("the number of interleaved files", slots, "1 or more");
  if (block_records < 1) refuse("the number of records of a block", block_records, "1 or more");
  if (!shuffles_files_) {
    laps_ = std::make_shared<const Laps>(Laps::files_of(file_records_), slots_, block_records_);
  }
}

std::shared_ptr<const InterleavedOrder::Laps> InterleavedOrder::shuffled_laps(
    std::uint64_t seed, std::uint64_t epoch) const {
  const std::lock_guard lock(mutex_);
  if (last_.laps == nullptr || last_.seed != seed || last_.epoch != epoch) {
    const std::vector<Laps::File> files = Laps::files_of(file_records_);
    const auto count = static_cast<std::int64_t>(files.size());
    const Permutation permutation(count, derive_key(KeyPurpose::files, seed, epoch));
    std::vector<Laps::File> shuffled;
    shuffled.reserve(files.size());
    for (std::int64_t i = 0; i < count; ++i) {
      shuffled.push_back(files[static_cast<std::size_t>(permutation.at(i))]);
    }
    last_ = {seed, epoch, std::make_shared<const Laps>(shuffled, slots_, block_records_)};
  }
  return last_.laps;
}

std::shared_ptr<const Order> InterleavedOrder::decode(Decoder& decoder) {
  const std::int64_t slots = decoder.integer();
  const std::int64_t block_records = decoder.integer();
  const bool shuffles_files = decoder.flag();
  return std::make_shared<const InterleavedOrder>(decoder.integers(), slots, block_records,
                                                  shuffles_files);
}

void InterleavedOrder::encode(Encoder& encoder) const {
  encoder.integer(slots_);
  encoder.integer(block_records_);
  encoder.flag(shuffles_files_);
  encoder.integers(file_records_);
}

std::unique_ptr<const EpochOrder> InterleavedOrder::of_epoch(std::uint64_t seed,
                                                             std::uint64_t epoch) const {
  return std::make_unique<const Epoch>(shuffles_files_ ? shuffled_laps(seed, epoch) : laps_);
}

std::shared_ptr<const Order> InterleavedOrder::over_files(const std::vector<std::int64_t>& firsts,
                                                          std::int64_t records) const {
  if (records != firsts.back()) over(records);  // throws for the wrong number of records
  std::vector<std::int64_t> file_records;
  for (std::size_t i = 1; i < firsts.size(); ++i) file_records.push_back(firsts[i] - firsts[i - 1]);
  if (file_records == file_records_) return nullptr;
  return std::make_shared<const InterleavedOrder>(std::move(file_records), slots_, block_records_,
                                                  shuffles_files_);
}

std::string InterleavedOrder::describe_shuffle(std::uint64_t seed) const {
  std::string turns = std::to_string(slots_);
  if (block_records_ != 1) turns += "x" + std::to_string(block_records_);
  const std::string shuffle = shuffles_files_ ? "files seed=" + std::to_string(seed) : "none";
  return "shuffle=" + shuffle + " interleaved=" + turns + ":" +
         std::to_string(siphash_of(file_records_));
}

}  // namespace tfrfast
