#include "core/example/value_summary.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace tfrfast {
namespace {

// Spreads a value's bits over a whole hash (MurmurHash3's 64-bit finisher).
std::uint64_t spread(std::uint64_t bits) noexcept {
  bits ^= bits >> 33;
  bits *= 0xff51afd7ed558ccdu;
  bits ^= bits >> 33;
  bits *= 0xc4ceb9fe1a85ec53u;
  return bits ^ bits >> 33;
}

std::uint64_t hash_of_value(WireBytes string) noexcept {
  std::uint64_t hash = string.size();
  std::size_t next = 0;
  std::uint64_t word;
  for (; string.size() - next >= sizeof word; next += sizeof word) {
    std::memcpy(&word, string.data() + next, sizeof word);
    hash = spread(hash ^ word) + 0x9e3779b97f4a7c15u;
  }
  word = 0;
  if (next != string.size()) std::memcpy(&word, string.data() + next, string.size() - next);
  return spread(hash ^ word);
}

}  // namespace

ValueSummary::ValueSummary() : slots_(kSlots), registers_(std::size_t{1} << kRegisterBits) {}

template <class MakeValue>
inline void ValueSummary::track(std::uint64_t hash, const MakeValue& make_value) {
  std::uint8_t& longest = registers_[hash >> (64 - kRegisterBits)];
  const auto zeros = static_cast<std::uint8_t>(
      1 + std::min<int>(std::countl_zero(hash << kRegisterBits), 64 - kRegisterBits));
  if (zeros > longest) longest = zeros;
  std::size_t place = hash % kSlots;
  while (slots_[place].count != 0 && slots_[place].hash != hash) place = (place + 1) % kSlots;
  if (slots_[place].count != 0) {
    ++slots_[place].count;
    return;
  }
  if (used_ == kTracked) return forget_rare();
  slots_[place] = {hash, 1, make_value()};
  ++used_;
}

// Subtracts one from every tracked value, and drops the value that has no slot. So each count is
// too low by at most the number of calls.
void ValueSummary::forget_rare() {
  ++uncounted_;
  std::vector<CountedValue> kept;
  for (const CountedValue& slot : slots_) {
    if (slot.count > 1) kept.push_back({slot.hash, slot.count - 1, slot.value});
  }
  std::vector<std::string> strings;
  std::fill(slots_.begin(), slots_.end(), CountedValue());
  used_ = kept.size();
  for (CountedValue& slot : kept) {
    if (!strings_.empty()) {
      strings.push_back(std::move(strings_[slot.value]));
      slot.value = strings.size() - 1;
    }
    std::size_t place = slot.hash % kSlots;
    while (slots_[place].count != 0) place = (place + 1) % kSlots;
    slots_[place] = slot;
  }
  strings_.swap(strings);
}

void ValueSummary::add(std::span<const std::int64_t> ints) {
  for (const std::int64_t value : ints) {
    numbers_.add(value);
    const auto bits = static_cast<std::uint64_t>(value);
    track(spread(bits), [&] { return bits; });
  }
}

void ValueSummary::add(std::span<const float> floats) {
  for (const float value : floats) {
    numbers_.add(value);
    const auto bits = std::uint64_t{std::bit_cast<std::uint32_t>(value)};
    track(spread(bits), [&] { return bits; });
  }
}

void ValueSummary::add(WireBytes string) {
  ++numbers_.count;
  track(hash_of_value(string), [&] {
    const std::size_t shown = std::min(string.size(), kShownBytes);
    strings_.emplace_back(reinterpret_cast<const char*>(string.data()), shown);
    return std::uint64_t{strings_.size() - 1};
  });
}

double ValueSummary::distinct() const {
  if (is_exact()) return static_cast<double>(used_);
  const auto count = static_cast<double>(registers_.size());
  double sum = 0;
  std::size_t empty = 0;
  for (const std::uint8_t longest : registers_) {
    sum += std::ldexp(1.0, -longest);
    empty += longest == 0;
  }
  const double estimate = 0.7213 / (1 + 1.079 / count) * count * count / sum;
  if (estimate <= 2.5 * count && empty != 0) {
    return count * std::log(count / static_cast<double>(empty));
  }
  return estimate;
}

std::vector<ValueSummary::Frequent> ValueSummary::most_frequent(std::size_t wanted) const {
  std::vector<CountedValue> all;
  for (const CountedValue& slot : slots_) {
    if (slot.count != 0) all.push_back(slot);
  }
  const auto before = [](const CountedValue& a, const CountedValue& b) {
    return a.count != b.count ? a.count > b.count : a.hash < b.hash;
  };
  wanted = std::min(wanted, all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(wanted), all.end(),
                    before);
  std::vector<Frequent> found;
  for (std::size_t i = 0; i < wanted; ++i) {
    const CountedValue& slot = all[i];
    Frequent& frequent = found.emplace_back();
    frequent.count = slot.count;
    frequent.bits = slot.value;
    if (!strings_.empty()) frequent.string = strings_[slot.value];
  }
  return found;
}

}  // namespace tfrfast
