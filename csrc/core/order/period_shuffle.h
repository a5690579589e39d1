// The random order of the slots in each period of a mixture.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/order/feistel.h"
#include "core/order/slots.h"

namespace tfrfast {

// Periods of at most so many slots are shuffled at once, larger ones slot by slot. A rest is
// shuffled as its periods are.
inline constexpr std::int64_t kTableSlots = 256;

// Of one epoch. Immutable, any number of threads.
class PeriodShuffle {
 public:
  PeriodShuffle(std::uint64_t seed, std::uint64_t epoch) noexcept;

  // Distinguishes the periods of an epoch: they are counted from position `begin` on.
  std::uint64_t tweak(std::int64_t begin, std::int64_t period) const noexcept;

  // The slots at all positions of a period of at most kTableSlots.
  static void shuffle(std::uint64_t tweak, std::int64_t size, std::uint16_t* slots) noexcept;

  // Under this key, the slot at a position of a larger period is a permutation with its tweak.
  const RoundKeys& keys() const noexcept { return keys_; }

  // The slots at the first `count` positions of a period, or of a rest that is shuffled like the
  // periods before it.
  void first_slots(std::uint64_t tweak, std::int64_t period, std::int64_t size, std::int64_t count,
                   std::uint32_t* slots) const noexcept;

 private:
  SipKey key_;
  RoundKeys keys_;
};

}  // namespace tfrfast
