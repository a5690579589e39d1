// The random order of the slots in each period of a mixture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/order/feistel.h"
#include "core/order/slots.h"

namespace tfrfast {

// Periods of at most kTableSlots slots are shuffled at once, larger periods slot by slot. A rest is
// shuffled in the way of its periods.
inline constexpr std::int64_t kTableSlots = 256;

// The shuffle of one epoch. Immutable. Any number of threads.
class PeriodShuffle {
 public:
  PeriodShuffle(std::uint64_t seed, std::uint64_t epoch) noexcept;

  // Distinguishes the periods of an epoch, counted from position `begin` on.
  std::uint64_t tweak(std::int64_t begin, std::int64_t period) const noexcept;

  // Shuffles items. Fisher-Yates, from the inside out.
  template <class Item>
  static void exchange(std::uint64_t tweak, std::size_t size, Item* items) noexcept {
    for (std::uint64_t i = 0; i < size; ++i) {
      std::swap(items[i], items[((random_number(tweak, i) >> 32) * (i + 1)) >> 32]);
    }
  }

  // Writes the slots at all positions of a period of at most kTableSlots.
  static void shuffle(std::uint64_t tweak, std::int64_t size, std::uint16_t* slots) noexcept;

  // Under these keys, a permutation with the period's tweak maps positions of a larger period to
  // slots.
  const RoundKeys& keys() const noexcept { return keys_; }

 private:
  // SplitMix64 with a counter as the state.
  static std::uint64_t random_number(std::uint64_t tweak, std::uint64_t count) noexcept {
    std::uint64_t value = tweak + (count + 1) * 0x9e3779b97f4a7c15u;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
  }

  SipKey key_;
  RoundKeys keys_;
};

}  // namespace tfrfast
