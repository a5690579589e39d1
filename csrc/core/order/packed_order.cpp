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

void check_spec(const PackingSpec& spec) {
  if (spec.tokens.empty() || spec.tokens.size() > kMaxBudgets ||
      spec.counted.tables.size() != spec.tokens.size()) {
    throw Error(ErrorKind::invalid, "A pack has from 1 to 4 budgets of tokens, each with lengths.");
  }
  for (const std::int64_t tokens : spec.tokens) check_range("tokens", tokens, 1, kMaxTokens);
  spec.counted.check();
  if (spec.overlong != Overlong::split) return;
  if (spec.tokens.size() > 1) {
    throw Error(ErrorKind::invalid,
                "overlong=\"split\" goes with one budget of tokens: a piece of one feature would "
                "end within another. Use \"cut\" or \"error\".");
  }
  const std::vector<std::int64_t>& indices = spec.counted.indices;
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
  std::vector<std::int64_t> first_members;
  CompactNumbers members;
  std::vector<bool> go_on;
  Lengths row{};
  Fill fill;

  // Calls visit(record, lengths, goes_on) for each piece. `goes_on` has a bit for each budget: the
  // record has more tokens than the row that the piece fills.
  template <class Visit>
  static void for_each_piece(const PackingSpec& spec, Fill& fill, Visit&& visit) {
    const std::size_t budgets = spec.tokens.size();
    const CountedRecords& counted = spec.counted;
    for (std::size_t i = 0; i < counted.count(); ++i) {
      const std::int64_t record = counted.record(i);
      Lengths lengths{};
      bool is_long = false;
      std::uint64_t all = 0;
      unsigned goes_on = 0;
      for (std::size_t b = 0; b < budgets; ++b) {
        lengths[b] = counted.length(record, b);
        all += lengths[b];
        const auto tokens = static_cast<std::uint32_t>(spec.tokens[b]);
        if (lengths[b] <= tokens) continue;
        is_long = true;
        if (spec.overlong == Overlong::refuse) {
          throw Error(ErrorKind::invalid,
                      "Record " + std::to_string(counted.first + record) + " has " +
                          std::to_string(lengths[b]) + " tokens, and a row has " +
                          std::to_string(tokens) +
                          ". Allow more, or give overlong=\"cut\" or \"split\".");
        }
        if (spec.overlong == Overlong::split) continue;
        lengths[b] = tokens;
        goes_on |= 1u << b;
      }
      if (all == 0) {
        ++fill.left_out;
        continue;
      }
      ++fill.records;
      if (is_long) ++(spec.overlong == Overlong::cut ? fill.cut : fill.split);
      if (is_long && spec.overlong == Overlong::split) {
        const auto tokens = static_cast<std::uint32_t>(spec.tokens[0]);
        for (; lengths[0] > tokens; lengths[0] -= tokens) visit(record, Lengths{tokens}, 1u);
      }
      visit(record, lengths, goes_on);
    }
  }
};

PackedOrder::Sorted PackedOrder::sort(const PackingSpec& spec) {
  check_spec(spec);
  Sorted sorted;
  sorted.fill.tokens.resize(spec.tokens.size());
  for (std::size_t b = 0; b < spec.tokens.size(); ++b) {
    sorted.row[b] = static_cast<std::uint32_t>(spec.tokens[b]);
  }
  ClassNumbers numbers(spec.tokens.size());
  std::vector<LengthClass> found;
  Sorted::for_each_piece(spec, sorted.fill, [&](std::int64_t, const Lengths& lengths, unsigned) {
    std::uint32_t& number = numbers.of(lengths);
    if (number == ClassNumbers::kNew) {
      number = static_cast<std::uint32_t>(found.size());
      found.push_back({lengths, 0});
    }
    ++found[number].count;
  });
  sorted.classes = found;
  std::sort(sorted.classes.begin(), sorted.classes.end(),
            [](const LengthClass& a, const LengthClass& b) { return a.lengths < b.lengths; });
  std::int64_t pieces = 0;
  for (std::uint32_t c = 0; c < sorted.classes.size(); ++c) {
    const LengthClass& each = sorted.classes[c];
    sorted.first_members.push_back(pieces);
    pieces += each.count;
    numbers.of(each.lengths) = c;
    for (std::size_t b = 0; b < spec.tokens.size(); ++b) {
      sorted.fill.tokens[b] += std::int64_t{each.lengths[b]} * each.count;
    }
  }
  sorted.first_members.push_back(pieces);
  sorted.fill.pieces = pieces;
  sorted.members = CompactNumbers(static_cast<std::size_t>(pieces), spec.counted.records);
  const std::size_t budgets = spec.tokens.size();
  if (sorted.fill.cut + sorted.fill.split != 0) {
    sorted.go_on.resize(static_cast<std::size_t>(pieces) * budgets);
  }
  std::vector<std::int64_t> next = sorted.first_members;
  Fill again;
  Sorted::for_each_piece(
      spec, again, [&](std::int64_t record, const Lengths& lengths, unsigned goes_on) {
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
  PackedEpoch(const PackedOrder& order, std::shared_ptr<const PackShapes> shapes,
              std::uint64_t seed, std::uint64_t epoch)
      : order_(&order),
        shapes_(std::move(shapes)),
        packs_(order.positions(), derive_key(KeyPurpose::packs, seed, epoch)),
        place_key_(derive_key(KeyPurpose::places, seed, epoch)),
        place_keys_(expand_key(place_key_, kPlaceRounds)),
        row_key_(derive_key(KeyPurpose::rows, seed, epoch)) {}

  // Writes the first record of each pack.
  void evaluate(const std::int64_t* positions, std::size_t count,
                std::int64_t* out) const override {
    for (std::size_t i = 0; i < count; ++i) out[i] = members_at({positions + i, 1})[0].record;
  }

  std::int64_t rows_at(std::int64_t position) const override {
    std::int64_t rows = 0;
    PackShapes::Walk walk(*shapes_, packs_.at(position));
    while (!walk.at_end()) rows += walk.next().count;
    return rows;
  }

  void write_rows(std::int64_t position, std::int64_t* out) const override {
    for (const Member& member : members_at({&position, 1})) *out++ = member.record;
  }

  void add_packs(std::span<const std::int64_t> positions, Packs& packs) const override {
    for (const Member& member : members_at(positions, &packs.ends)) {
      packs.records.push_back(member.record);
      packs.pieces.push_back(
          {order_->classes_[member.length_class].lengths, number_of(member), goes_on(member)});
    }
  }

 private:
  struct Member {
    std::uint32_t length_class = 0;
    std::int64_t place = 0;  // among the pieces of the class
    std::int64_t record = 0;
  };

  // Appends the end of each pack to `ends`.
  std::vector<Member> members_at(std::span<const std::int64_t> positions,
                                 std::vector<std::size_t>* ends = nullptr) const {
    std::vector<std::int64_t> packs(positions.size());
    packs_.evaluate(positions.data(), positions.size(), packs.data());
    // Side by side, since the memory of each step of a walk is far away.
    std::vector<PackShapes::Walk> walks;
    for (const std::int64_t pack : packs) walks.emplace_back(*shapes_, pack);
    std::vector<std::pair<std::size_t, PackShapes::Places>> found;  // with the number of the pack
    std::vector<std::size_t> own_ends(packs.size() + 1);
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (std::size_t i = 0; i < walks.size(); ++i) {
        if (walks[i].at_end()) continue;
        goes_on = true;
        found.emplace_back(i, walks[i].next());
        own_ends[i + 1] += static_cast<std::size_t>(found.back().second.count);
      }
    }
    std::partial_sum(own_ends.begin(), own_ends.end(), own_ends.begin());
    std::vector<Member> members(own_ends.back());
    for (const auto& [i, places] : found) {
      for (std::int64_t n = 0; n < places.count; ++n) {
        members[own_ends[i]++] = {places.length_class, places.first + n, 0};
      }
    }
    ManyPermutations lanes(place_keys_);
    for (std::size_t done = 0; done < members.size();) {
      lanes.clear();
      const std::size_t used = std::min(kLanes, members.size() - done);
      for (std::size_t i = 0; i < used; ++i) {
        const Member& member = members[done + i];
        lanes.add(order_->classes_[member.length_class].count,
                  siphash(place_key_, {member.length_class}), member.place);
      }
      lanes.run();
      for (std::size_t i = 0; i < used; ++i) {
        Member& member = members[done + i];
        member.place = lanes.result(i);
        member.record = order_->members_[member_of(member)];
      }
      done += used;
    }
    const std::size_t before = ends == nullptr || ends->empty() ? 0 : ends->back();
    std::size_t begin = 0;
    for (std::size_t i = 0; i < packs.size(); ++i) {
      const std::uint64_t tweak = siphash(row_key_, {static_cast<std::uint64_t>(packs[i])});
      PeriodShuffle::exchange(tweak, own_ends[i] - begin, members.data() + begin);
      begin = own_ends[i];
      if (ends != nullptr) ends->push_back(before + begin);
    }
    return members;
  }

  std::size_t member_of(const Member& member) const noexcept {
    return static_cast<std::size_t>(order_->first_members_[member.length_class] + member.place);
  }

  std::uint8_t goes_on(const Member& member) const noexcept {
    if (order_->go_on_.empty()) return 0;
    const std::size_t budgets = order_->spec_.tokens.size();
    unsigned bits = 0;
    for (std::size_t b = 0; b < budgets; ++b) {
      bits |= unsigned{order_->go_on_[member_of(member) * budgets + b]} << b;
    }
    return static_cast<std::uint8_t>(bits);
  }

  // Full pieces of a record are neighbours in their class; the rest of the record comes after them.
  std::int64_t number_of(const Member& member) const noexcept {
    if (order_->fill_.split == 0) return 0;
    const std::size_t last = order_->classes_.size() - 1;
    if (order_->classes_[last].lengths[0] != order_->row_[0]) return 0;
    const auto [first, end] = order_->members_.equal_range(
        static_cast<std::size_t>(order_->first_members_[last]),
        static_cast<std::size_t>(order_->first_members_[last + 1]), member.record);
    return static_cast<std::int64_t>((member.length_class == last ? member_of(member) : end) -
                                     first);
  }

  const PackedOrder* order_;
  const std::shared_ptr<const PackShapes> shapes_;
  const Permutation packs_;
  const SipKey place_key_;
  const RoundKeys place_keys_;
  const SipKey row_key_;
};

PackedOrder::PackedOrder(PackingSpec spec) : PackedOrder(spec, sort(spec)) {}

PackedOrder::PackedOrder(PackingSpec spec, Sorted sorted)
    : Order(sorted.fill.packs, spec.counted.records),
      spec_(std::move(spec)),
      row_(sorted.row),
      classes_(std::move(sorted.classes)),
      first_members_(std::move(sorted.first_members)),
      members_(std::move(sorted.members)),
      go_on_(std::move(sorted.go_on)),
      fill_(std::move(sorted.fill)),
      max_rows_(fill_.packs == 0 ? 1 : (fill_.pieces + fill_.packs - 1) / fill_.packs) {
  spec_.counted.close();
}

std::shared_ptr<const PackShapes> PackedOrder::shapes(std::uint64_t seed,
                                                      std::uint64_t epoch) const {
  const std::lock_guard lock(every_draw);
  for (const Drawn& drawn : drawn_) {
    if (drawn.seed == seed && drawn.epoch == epoch) return drawn.shapes;
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
  if (drawn_.size() == kEpochsKept) drawn_.erase(drawn_.begin());
  drawn_.push_back({seed, epoch, std::make_shared<const PackShapes>(std::move(*shapes))});
  return drawn_.back().shapes;
}

std::unique_ptr<const EpochOrder> PackedOrder::of_epoch(std::uint64_t seed,
                                                        std::uint64_t epoch) const {
  return std::make_unique<const PackedEpoch>(*this, shapes(seed, epoch), seed, epoch);
}

std::shared_ptr<const Order> PackedOrder::over(std::int64_t records) const {
  if (records != this->records()) {
    refuse("the number of records", records,
           "that of the lengths, which is " + std::to_string(this->records()));
  }
  return shared_from_this();
}

std::string PackedOrder::describe_shuffle(std::uint64_t seed) const {
  std::string text = "shuffle=packed packs=" + std::to_string(positions());
  for (const std::int64_t tokens : spec_.tokens) text += " tokens=" + std::to_string(tokens);
  return text + " overlong=" + name_of(spec_.overlong) + " seed=" + std::to_string(seed);
}

std::string PackedOrder::describe_records() const {
  std::string text = Order::describe_records();
  for (const LengthReference& table : spec_.counted.references) {
    text += " lengths=" + std::to_string(spec_.counted.first) + ":" + std::to_string(table.hash);
  }
  if (!spec_.counted.has_indices) return text;
  SipHash hash(SipKey{});
  for (const std::int64_t index : spec_.counted.indices) {
    hash.add(static_cast<std::uint64_t>(index));
  }
  return text + " indices=" + std::to_string(spec_.counted.indices.size()) + ":" +
         std::to_string(hash.finish());
}

void PackedOrder::encode(Encoder& encoder) const {
  const std::string text = describe(0);
  remember_order(text, weak_from_this());
  encoder.string(text);
  spec_.counted.encode(encoder);
  encoder.integers(spec_.tokens);
  encoder.string(name_of(spec_.overlong));
}

std::shared_ptr<const Order> PackedOrder::decode(Decoder& decoder) {
  const std::string text(decoder.string());
  PackingSpec spec;
  spec.counted = CountedRecords::decode(decoder);
  spec.tokens = decoder.integers();
  spec.overlong = overlong_named(decoder.string());
  if (auto living = living_order(text)) return living;
  spec.counted.open();
  return std::make_shared<const PackedOrder>(std::move(spec));
}

}  // namespace tfrfast
