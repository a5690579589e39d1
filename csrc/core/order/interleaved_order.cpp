#include "core/order/interleaved_order.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "core/order/permutation.h"
#include "core/order/ranges.h"
#include "core/order/siphash.h"

namespace tfrfast {
namespace {

std::int64_t sum_of(const std::vector<std::int64_t>& file_records) {
  std::int64_t sum = 0;
  for (const std::int64_t records : file_records) {
    check_range("the number of a file's records", records, 0, kMaxPermutationSize - sum);
    sum += records;
  }
  return sum;
}

}  // namespace

// The turns of an epoch's files. Immutable.
class InterleavedOrder::Turns {
 public:
  // From lap `lap` on, a slot gives `records` records of a file in each lap, or none. Lasts until
  // the slot's next turn.
  struct FileTurn {
    std::int64_t lap = 0;
    std::int64_t records = 0;
    std::int64_t first = 0;  // number of the first record
  };
  // The laps from `lap` on in which each slot goes on with its turn. Lasts until the next SameLaps.
  struct SameLaps {
    std::int64_t lap = 0;
    std::int64_t position = 0;
    std::int64_t lap_records = 0;
  };
  struct File {
    std::int64_t first = 0;
    std::int64_t records = 0;
  };

  Turns(const std::vector<File>& files, std::int64_t slots, std::int64_t block_records);

  std::int64_t block_records() const noexcept { return block_records_; }
  const std::vector<std::vector<FileTurn>>& slots() const noexcept { return slots_; }
  // Ends with laps of no records, at the epoch's end.
  const std::vector<SameLaps>& same_laps() const noexcept { return same_laps_; }

 private:
  void add_same_laps();

  std::int64_t block_records_;
  std::vector<std::vector<FileTurn>> slots_;
  std::vector<SameLaps> same_laps_;
};

InterleavedOrder::Turns::Turns(const std::vector<File>& files, std::int64_t slots,
                               std::int64_t block_records)
    : block_records_(block_records),
      slots_(std::min(static_cast<std::size_t>(slots), files.size())) {
  using Free = std::pair<std::int64_t, std::size_t>;  // a lap and a slot
  std::priority_queue<Free, std::vector<Free>, std::greater<>> free;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) free.push({0, slot});
  for (const auto& [first, records] : files) {
    const auto [lap, slot] = free.top();
    free.pop();
    const std::int64_t whole = records / block_records, rest = records % block_records;
    if (whole > 0) slots_[slot].push_back({lap, block_records, first});
    slots_[slot].push_back({lap + whole, rest, first + records - rest});
    free.push({lap + whole + 1, slot});
  }
  for (; !free.empty(); free.pop()) slots_[free.top().second].push_back({free.top().first, 0, 0});
  add_same_laps();
}

void InterleavedOrder::Turns::add_same_laps() {
  std::vector<std::pair<std::int64_t, std::int64_t>> changes;  // laps, and by how many records
  for (const std::vector<FileTurn>& turns : slots_) {
    std::int64_t before = 0;
    for (const FileTurn& turn : turns) {
      changes.emplace_back(turn.lap, turn.records - before);
      before = turn.records;
    }
  }
  std::sort(changes.begin(), changes.end());
  SameLaps last;
  for (const auto& [lap, more] : changes) {
    if (lap != last.lap) {
      same_laps_.push_back(last);
      last.position += (lap - last.lap) * last.lap_records;
      last.lap = lap;
    }
    last.lap_records += more;
  }
  same_laps_.push_back(last);
}

class InterleavedOrder::Epoch final : public EpochOrder {
 public:
  explicit Epoch(std::shared_ptr<const Turns> turns) noexcept : turns_(std::move(turns)) {}

  void evaluate(const std::int64_t* positions, std::size_t count,
                std::int64_t* out) const override {
    const std::int64_t block_records = turns_->block_records();
    auto laps = turns_->same_laps().end() - 1;  // after every position
    std::vector<Block> blocks;
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t position = positions[i];
      if (position < laps->position || position >= (laps + 1)->position) {
        laps = same_laps_at(position);
        find_blocks(laps->lap, blocks);
      }
      const std::int64_t passed = position - laps->position;
      const std::int64_t within = passed % laps->lap_records;
      out[i] = block_with(blocks, *laps, within).first +
               passed / laps->lap_records * block_records + within;
    }
  }

 private:
  using SameLaps = Turns::SameLaps;
  // A slot's records in the first of some SameLaps.
  struct Block {
    std::int64_t end = 0;    // in the lap
    std::int64_t first = 0;  // number of the first record, minus the block's begin in the lap
  };

  std::vector<SameLaps>::const_iterator same_laps_at(std::int64_t position) const {
    const std::vector<SameLaps>& all = turns_->same_laps();
    const auto after = std::upper_bound(
        all.begin(), all.end(), position,
        [](std::int64_t wanted, const SameLaps& each) { return wanted < each.position; });
    return after - 1;
  }

  void find_blocks(std::int64_t lap, std::vector<Block>& blocks) const {
    blocks.clear();
    std::int64_t begin = 0;
    for (const std::vector<Turns::FileTurn>& slot : turns_->slots()) {
      const auto after = std::upper_bound(
          slot.begin(), slot.end(), lap,
          [](std::int64_t wanted, const Turns::FileTurn& turn) { return wanted < turn.lap; });
      const Turns::FileTurn& turn = *(after - 1);
      if (turn.records == 0) continue;
      const std::int64_t first = turn.first + (lap - turn.lap) * turns_->block_records();
      blocks.push_back({begin + turn.records, first - begin});
      begin += turn.records;
    }
  }

  const Block& block_with(const std::vector<Block>& blocks, const SameLaps& laps,
                          std::int64_t within) const {
    const std::int64_t block_records = turns_->block_records();
    if (laps.lap_records == static_cast<std::int64_t>(blocks.size()) * block_records) {
      return blocks[static_cast<std::size_t>(within / block_records)];
    }
    return *std::upper_bound(  // a lap with short blocks
        blocks.begin(), blocks.end(), within,
        [](std::int64_t wanted, const Block& block) { return wanted < block.end; });
  }

  std::shared_ptr<const Turns> turns_;
};

InterleavedOrder::InterleavedOrder(std::vector<std::int64_t> file_records, std::int64_t slots,
                                   std::int64_t block_records)
    : Order(kName, sum_of(file_records), sum_of(file_records)),
      file_records_(std::move(file_records)),
      slots_(slots),
      // Larger blocks make no difference: no file has more records than all files together.
      block_records_(std::min(block_records, std::max<std::int64_t>(1, records()))) {
  if (slots < 1) refuse("the number of interleaved files", slots, "1 or more");
  if (block_records < 1) refuse("the number of records of a block", block_records, "1 or more");
}

std::shared_ptr<const InterleavedOrder::Turns> InterleavedOrder::turns_of(
    std::uint64_t seed, std::uint64_t epoch) const {
  const std::lock_guard lock(mutex_);
  if (last_.turns == nullptr || last_.seed != seed || last_.epoch != epoch) {
    std::vector<Turns::File> files;
    std::int64_t first = 0;
    for (const std::int64_t records : file_records_) {
      files.push_back({first, records});
      first += records;
    }
    const auto count = static_cast<std::int64_t>(files.size());
    const Permutation permutation(count, derive_key(KeyPurpose::files, seed, epoch));
    std::vector<Turns::File> shuffled;
    for (std::int64_t i = 0; i < count; ++i) {
      shuffled.push_back(files[static_cast<std::size_t>(permutation.at(i))]);
    }
    last_ = {seed, epoch, std::make_shared<const Turns>(shuffled, slots_, block_records_)};
  }
  return last_.turns;
}

std::shared_ptr<const Order> InterleavedOrder::decode(Decoder& decoder) {
  const std::int64_t slots = decoder.integer();
  const std::int64_t block_records = decoder.integer();
  decoder.require(decoder.flag(), "files take turns in a random order");
  return std::make_shared<const InterleavedOrder>(decoder.integers(), slots, block_records);
}

void InterleavedOrder::encode(Encoder& encoder) const {
  encoder.integer(slots_);
  encoder.integer(block_records_);
  encoder.flag(true);  // files are shuffled
  encoder.integers(file_records_);
}

std::unique_ptr<const EpochOrder> InterleavedOrder::of_epoch(std::uint64_t seed,
                                                             std::uint64_t epoch) const {
  return std::make_unique<const Epoch>(turns_of(seed, epoch));
}

std::shared_ptr<const Order> InterleavedOrder::over_files(const std::vector<std::int64_t>& firsts,
                                                          std::int64_t records) const {
  if (records != firsts.back()) over(records);  // throws for the wrong number of records
  std::vector<std::int64_t> file_records;
  for (std::size_t i = 1; i < firsts.size(); ++i) file_records.push_back(firsts[i] - firsts[i - 1]);
  if (file_records == file_records_) return nullptr;
  return std::make_shared<const InterleavedOrder>(std::move(file_records), slots_, block_records_);
}

std::string InterleavedOrder::describe_shuffle(std::uint64_t seed) const {
  std::string turns = std::to_string(slots_);
  if (block_records_ != 1) turns += "x" + std::to_string(block_records_);
  return "shuffle=files seed=" + std::to_string(seed) + " interleaved=" + turns + ":" +
         std::to_string(siphash_of(file_records_));
}

}  // namespace tfrfast
