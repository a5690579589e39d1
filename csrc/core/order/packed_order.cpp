#include "core/order/packed_order.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "core/base/choice.h"
#include "core/base/fork.h"
#include "core/order/many_permutations.h"
#include "core/order/period_shuffle.h"
#include "core/order/permutation.h"
#include "core/order/ranges.h"

namespace tfrfast {
namespace {

// In the order of the enum.
constexpr Choice<Overlong> kOverlongs[] = {
    {"error", Overlong::refuse}, {"cut", Overlong::cut}, {"split", Overlong::split}};

constexpr std::int64_t kMaxTokens = (std::int64_t{1} << 31) - 1;
constexpr int kPlaceRounds = 24;  // a length may have few pieces
constexpr std::size_t kEpochsKept = 4;

// The fixed draws, of seed 0 and epoch 0, whose larger number of packs every epoch has. Epochs try
// the attempts from 0 on. About a third of all draws need more packs, so the last resort, a fixed
// draw, is not seen in practice.
constexpr std::uint64_t kFixedAttempt = std::uint64_t{1} << 63;
constexpr std::uint64_t kAttempts = 32;

// One lock for all draws lets fork() wait for it. Other threads that need the same epoch wait, too.
constinit std::mutex every_draw;
std::mutex& draws_mutex() {
  return every_draw;
}
[[maybe_unused]] const int kDrawsGuarded = make_fork_wait_for<draws_mutex>();

// Numbers the classes of lengths.
class ClassNumbers {
 public:
  explicit ClassNumbers(std::size_t budgets) : is_short_(budgets == 1) {}

  std::uint32_t& of(const Lengths& lengths) {
    if (is_short_ && lengths[0] < kDirect) {
      if (lengths[0] >= direct_.size()) direct_.resize(lengths[0] + std::size_t{1}, kNew);
      return direct_[lengths[0]];
    }
    return others_.try_emplace(lengths, kNew).first->second;
  }
  static constexpr std::uint32_t kNew = 0xffff'ffff;

 private:
  static constexpr std::uint32_t kDirect = 1 << 20;
  struct Hash {
    std::size_t operator()(const Lengths& lengths) const noexcept {
      return siphash({}, {lengths[0] | std::uint64_t{lengths[1]} << 32,
                          lengths[2] | std::uint64_t{lengths[3]} << 32});
    }
  };
  bool is_short_;
  std::vector<std::uint32_t> direct_;
  std::unordered_map<Lengths, std::uint32_t, Hash> others_;
};

void check_packing(const CountedRecords& counted, const PackingOptions& options) {
  if (options.tokens.empty() || options.tokens.size() > kMaxBudgets ||
      counted.tables.size() != options.tokens.size()) {
    throw Error(ErrorKind::invalid, "A pack has from 1 to 4 budgets of tokens, each with lengths.");
  }
  for (const std::int64_t tokens : options.tokens) check_range("tokens", tokens, 1, kMaxTokens);
  counted.check();
  if (options.overlong != Overlong::split) return;
  if (options.tokens.size() > 1) {
    throw Error(ErrorKind::invalid,
                "overlong=\"split\" goes with one budget of tokens: a piece of one feature would "
                "end within another. Use \"cut\" or \"error\".");
  }
  const std::vector<std::int64_t>& indices = counted.indices;
  for (std::size_t i = 1; i < indices.size(); ++i) {
    if (indices[i - 1] < indices[i]) continue;
    throw Error(ErrorKind::invalid,
                "With overlong=\"split\" each piece comes once, so indices must ascend without "
                "repeats: " +
                    std::to_string(indices[i]) + " follows " + std::to_string(indices[i - 1]) +
                    ".");
  }
}

}  // namespace

Overlong overlong_named(std::string_view name) {
  return choose("overlong", name, kOverlongs);
}

const char* name_of(Overlong overlong) noexcept {
  return kOverlongs[static_cast<std::size_t>(overlong)].name;
}

// The pieces of all records, sorted by length.
struct PackedOrder::Sorted {
  std::vector<LengthClass> classes;
  CompactNumbers members;
  std::vector<bool> go_on;
  Lengths row{};
  Fill fill;

  // Calls visit(record, lengths, goes_on) for each piece. `goes_on` has a bit for each budget: the
  // record has more tokens than the row that the piece fills.
  template <class Visit>
  static void for_each_piece(const CountedRecords& counted, const PackingOptions& options,
                             Fill& fill, Visit&& visit) {
    const std::size_t budgets = options.tokens.size();
    for (std::size_t i = 0; i < counted.count(); ++i) {
      const std::int64_t record = counted.record(i);
      Lengths lengths{};
      bool is_long = false;
      std::uint64_t all = 0;
      unsigned goes_on = 0;
      for (std::size_t b = 0; b < budgets; ++b) {
        lengths[b] = counted.length(record, b);
        all += lengths[b];
        const auto tokens = static_cast<std::uint32_t>(options.tokens[b]);
        if (lengths[b] <= tokens) continue;
        is_long = true;
        if (options.overlong == Overlong::refuse) {
          throw Error(ErrorKind::invalid,
                      "Record " + std::to_string(counted.first + record) + " has " +
                          std::to_string(lengths[b]) + " tokens, and a row has " +
                          std::to_string(tokens) +
                          ". Allow more, or give overlong=\"cut\" or \"split\".");
        }
        if (options.overlong == Overlong::split) continue;
        lengths[b] = tokens;
        goes_on |= 1u << b;
      }
      if (all == 0) {
        ++fill.left_out;
        continue;
      }
      ++fill.records;
      if (is_long) ++(options.overlong == Overlong::cut ? fill.cut : fill.split);
      if (is_long && options.overlong == Overlong::split) {
        const auto tokens = static_cast<std::uint32_t>(options.tokens[0]);
        for (; lengths[0] > tokens; lengths[0] -= tokens) visit(record, Lengths{tokens}, 1u);
      }
      visit(record, lengths, goes_on);
    }
  }
};

PackedOrder::Sorted PackedOrder::sort(const CountedRecords& counted,
                                      const PackingOptions& options) {
  check_packing(counted, options);
  Sorted sorted;
  sorted.fill.tokens.resize(options.tokens.size());
  for (std::size_t b = 0; b < options.tokens.size(); ++b) {
    sorted.row[b] = static_cast<std::uint32_t>(options.tokens[b]);
  }
  ClassNumbers numbers(options.tokens.size());
  std::vector<LengthClass> found;
  Sorted::for_each_piece(counted, options, sorted.fill,
                         [&](std::int64_t, const Lengths& lengths, unsigned) {
                           std::uint32_t& number = numbers.of(lengths);
                           if (number == ClassNumbers::kNew) {
                             number = static_cast<std::uint32_t>(found.size());
                             found.push_back({lengths, 0, 0});
                           }
                           ++found[number].count;
                         });
  sorted.classes = found;
  std::sort(sorted.classes.begin(), sorted.classes.end(),
            [](const LengthClass& a, const LengthClass& b) { return a.lengths < b.lengths; });
  std::int64_t pieces = 0;
  std::vector<std::int64_t> next;
  for (std::uint32_t c = 0; c < sorted.classes.size(); ++c) {
    LengthClass& each = sorted.classes[c];
    each.first = pieces;
    next.push_back(pieces);
    pieces += each.count;
    numbers.of(each.lengths) = c;
    for (std::size_t b = 0; b < options.tokens.size(); ++b) {
      sorted.fill.tokens[b] += std::int64_t{each.lengths[b]} * each.count;
    }
  }
  sorted.fill.pieces = pieces;
  sorted.members = CompactNumbers(static_cast<std::size_t>(pieces), counted.records);
  const std::size_t budgets = options.tokens.size();
  if (sorted.fill.cut + sorted.fill.split != 0) {
    sorted.go_on.resize(static_cast<std::size_t>(pieces) * budgets);
  }
  Fill again;
  Sorted::for_each_piece(
      counted, options, again, [&](std::int64_t record, const Lengths& lengths, unsigned goes_on) {
        const auto member = static_cast<std::size_t>(next[numbers.of(lengths)]++);
        sorted.members.set(member, record);
        for (std::size_t b = 0; goes_on >> b != 0; ++b) {
          sorted.go_on[member * budgets + b] = (goes_on >> b & 1) != 0;
        }
      });
  const SipKey key = derive_key(KeyPurpose::shapes, 0, 0);
  for (const std::uint64_t attempt : {kFixedAttempt, kFixedAttempt + 1}) {
    sorted.fill.packs = std::max(
        sorted.fill.packs, PackShapes::draw(sorted.classes, sorted.row, key, attempt)->packs());
  }
  return sorted;
}

// Does not own the PackedOrder.
class PackedEpoch final : public EpochOrder {
 public:
  PackedEpoch(const PackedOrder& order, std::uint64_t seed, std::uint64_t epoch)
      : order_(&order),
        drawn_(order.drawn(seed, epoch)),
        packs_(order.positions(), derive_key(KeyPurpose::packs, seed, epoch)),
        place_keys_(expand_key(derive_key(KeyPurpose::places, seed, epoch), kPlaceRounds)),
        row_key_(derive_key(KeyPurpose::rows, seed, epoch)) {}

  // Writes the first record of each pack.
  void evaluate(const std::int64_t* positions, std::size_t count,
                std::int64_t* out) const override {
    std::vector<PackedRecord> records;
    for (std::size_t i = 0; i < count; ++i) {
      records.clear();
      add_rows({positions + i, 1}, 0, records);
      out[i] = records[0].record;
    }
  }

  void add_rows(std::span<const std::int64_t> positions, std::uint32_t first_row,
                std::vector<PackedRecord>& records) const override {
    std::vector<std::int64_t> packs(positions.size());
    packs_.evaluate(positions.data(), positions.size(), packs.data());
    // Side by side, since the memory of each step of a walk is far away.
    std::vector<PackShapes::Walk> walks;
    walks.reserve(packs.size());
    for (const std::int64_t pack : packs) walks.emplace_back(drawn_->shapes, pack);
    std::vector<Member> found;
    found.reserve(packs.size() * static_cast<std::size_t>(order_->max_rows()));
    std::vector<std::size_t> ends(packs.size() + 1);  // of each pack, among the members
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (std::uint32_t row = 0; row < packs.size(); ++row) {
        if (walks[row].at_end()) continue;
        goes_on = true;
        const PackShapes::ClassPlaces places = walks[row].next();
        for (std::int64_t i = 0; i < places.count; ++i) {
          found.push_back({places.length_class, row, places.first + i, 0});
        }
        ends[row + 1] += static_cast<std::size_t>(places.count);
      }
    }
    find_members(found);
    std::partial_sum(ends.begin(), ends.end(), ends.begin());
    std::vector<Member> members(found.size());
    for (const Member& member : found) members[ends[member.row]++] = member;
    const std::size_t before = records.size();
    records.resize(before + members.size());
    PackedRecord* out = records.data() + before;
    std::size_t next = 0;
    for (std::uint32_t row = 0; row < packs.size(); ++row) {
      const std::uint64_t tweak = siphash(row_key_, {static_cast<std::uint64_t>(packs[row])});
      PeriodShuffle::exchange(tweak, ends[row] - next, members.data() + next);
      Lengths columns{};
      for (std::int32_t segment = 1; next < ends[row]; ++next, ++segment) {
        const Member& member = members[next];
        const Lengths& lengths = order_->classes_[member.length_class].lengths;
        *out++ = {member.record, piece_of(member), first_row + row, segment,
                  columns,       lengths,          goes_on(member)};
        for (std::size_t b = 0; b < kMaxBudgets; ++b) columns[b] += lengths[b];
      }
    }
  }

 private:
  // A place of a class, and then the member of the order there.
  struct Member {
    std::uint32_t length_class = 0;
    std::uint32_t row = 0;
    std::int64_t number = 0;
    std::int64_t record = 0;
  };

  // Permutes the places of each class.
  void find_members(std::span<Member> members) const noexcept {
    ManyPermutations lanes(place_keys_);
    while (!members.empty()) {
      const auto part = members.first(std::min(kLanes, members.size()));
      members = members.subspan(part.size());
      lanes.clear();
      for (const Member& member : part) {
        lanes.add(order_->classes_[member.length_class].count, drawn_->tweaks[member.length_class],
                  member.number);
      }
      lanes.run();
      for (std::size_t i = 0; i < part.size(); ++i) {
        part[i].number = order_->classes_[part[i].length_class].first + lanes.result(i);
        part[i].record = order_->members_[static_cast<std::size_t>(part[i].number)];
      }
    }
  }

  std::uint8_t goes_on(const Member& member) const noexcept {
    if (order_->go_on_.empty()) return 0;
    const std::size_t budgets = order_->options_.tokens.size();
    unsigned bits = 0;
    for (std::size_t b = 0; b < budgets; ++b) {
      bits |= unsigned{order_->go_on_[static_cast<std::size_t>(member.number) * budgets + b]} << b;
    }
    return static_cast<std::uint8_t>(bits);
  }

  // Full pieces of a record are neighbours in their class, the last; the rest of the record comes
  // after them.
  std::int64_t piece_of(const Member& member) const noexcept {
    const LengthClass& full = order_->classes_.back();
    if (order_->fill_.split == 0 || full.lengths != order_->row_) return 0;
    const auto begin = static_cast<std::size_t>(full.first);
    const auto [first, end] = order_->members_.equal_range(
        begin, begin + static_cast<std::size_t>(full.count), member.record);
    const bool is_full = member.length_class + std::size_t{1} == order_->classes_.size();
    return (is_full ? member.number : static_cast<std::int64_t>(end)) -
           static_cast<std::int64_t>(first);
  }

  const PackedOrder* order_;
  const std::shared_ptr<const PackedOrder::DrawnEpoch> drawn_;
  const Permutation packs_;
  const RoundKeys place_keys_;
  const SipKey row_key_;
};

PackedOrder::PackedOrder(CountedRecords counted, PackingOptions options)
    : PackedOrder(counted, options, sort(counted, options)) {}

PackedOrder::PackedOrder(CountedRecords counted, PackingOptions options, Sorted sorted)
    : CountedOrder(kName, sorted.fill.packs, std::move(counted)),
      options_(std::move(options)),
      row_(sorted.row),
      classes_(std::move(sorted.classes)),
      members_(std::move(sorted.members)),
      go_on_(std::move(sorted.go_on)),
      fill_(std::move(sorted.fill)),
      max_rows_(fill_.packs == 0 ? 1 : (fill_.pieces + fill_.packs - 1) / fill_.packs) {}

std::shared_ptr<const PackedOrder::DrawnEpoch> PackedOrder::drawn(std::uint64_t seed,
                                                                  std::uint64_t epoch) const {
  const std::lock_guard lock(every_draw);
  for (const auto& each : drawn_) {
    if (each->seed == seed && each->epoch == epoch) return each;
  }
  const SipKey key = derive_key(KeyPurpose::shapes, seed, epoch);
  std::optional<PackShapes> shapes;
  for (std::uint64_t attempt = 0; attempt < kAttempts && !shapes; ++attempt) {
    shapes = PackShapes::draw(classes_, row_, key, attempt, positions());
  }
  if (!shapes) {
    shapes = PackShapes::draw(classes_, row_, derive_key(KeyPurpose::shapes, 0, 0), kFixedAttempt,
                              positions());
  }
  const SipKey place_key = derive_key(KeyPurpose::places, seed, epoch);
  std::vector<std::uint64_t> tweaks;
  for (std::uint64_t c = 0; c < classes_.size(); ++c) tweaks.push_back(siphash(place_key, {c}));
  if (drawn_.size() == kEpochsKept) drawn_.erase(drawn_.begin());
  drawn_.push_back(std::make_shared<const DrawnEpoch>(
      DrawnEpoch{seed, epoch, std::move(*shapes), std::move(tweaks)}));
  return drawn_.back();
}

std::unique_ptr<const EpochOrder> PackedOrder::of_epoch(std::uint64_t seed,
                                                        std::uint64_t epoch) const {
  return std::make_unique<const PackedEpoch>(*this, seed, epoch);
}

std::string PackedOrder::describe_shuffle(std::uint64_t seed) const {
  std::string text = "shuffle=packed packs=" + std::to_string(positions());
  for (const std::int64_t tokens : options_.tokens) text += " tokens=" + std::to_string(tokens);
  return text + " overlong=" + name_of(options_.overlong) + " seed=" + std::to_string(seed);
}

std::string PackedOrder::describe_records() const {
  std::string text = Order::describe_records();
  for (const LengthReference& table : counted().references) {
    text += " lengths=" + std::to_string(counted().first) + ":" + std::to_string(table.hash);
  }
  if (!counted().has_indices) return text;
  return text + " indices=" + std::to_string(counted().indices.size()) + ":" +
         std::to_string(siphash_of(counted().indices));
}

void PackedOrder::encode_options(Encoder& encoder) const {
  encoder.integers(options_.tokens);
  encoder.string(name_of(options_.overlong));
}

std::shared_ptr<const Order> PackedOrder::decode(Decoder& decoder) {
  return decode_with(
      kName, decoder,
      [](Decoder& options) {
        std::vector<std::int64_t> tokens = options.integers();
        return PackingOptions{std::move(tokens), overlong_named(options.string())};
      },
      [](CountedRecords counted, const PackingOptions& options) {
        return std::make_shared<const PackedOrder>(std::move(counted), options);
      });
}

}  // namespace tfrfast
