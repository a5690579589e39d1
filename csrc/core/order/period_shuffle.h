// The random order of the slots in each period of a mixture.
#pragma once

#include <cstddef>
#include <cstdint>

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

  // Writes the slots at all positions of a period of at most kTableSlots.
  static void shuffle(std::uint64_t tweak, std::int64_t size, std::uint16_t* slots) noexcept;

  // Under these keys, a permutation with the period's tweak maps positions of a larger period to
  // slots.
  const RoundKeys& keys() const noexcept { return keys_; }

  // Writes the slots at the first `count` positions of a period, or of a rest that is shuffled in
  // the way of its periods.
  void first_slots(std::uint64_t tweak, std::int64_t period, std::int64_t size, std::int64_t count,
                   std::uint32_t* slots) const noexcept;

 private:
  SipKey key_;
  RoundKeys keys_;
};

}  // namespace tfrfast
