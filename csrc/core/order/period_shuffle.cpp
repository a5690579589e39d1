#include "core/order/period_shuffle.h"

#include <algorithm>
#include <numeric>

#include "core/order/many_permutations.h"
#include "core/order/permutation.h"

namespace tfrfast {
namespace {

constexpr int kPeriodRounds = 24;  // periods are often small

}  // namespace

PeriodShuffle::PeriodShuffle(std::uint64_t seed, std::uint64_t epoch) noexcept
    : key_(derive_key(KeyPurpose::periods, seed, epoch)), keys_(expand_key(key_, kPeriodRounds)) {}

std::uint64_t PeriodShuffle::tweak(std::int64_t begin, std::int64_t period) const noexcept {
  return siphash(key_, {static_cast<std::uint64_t>(begin), static_cast<std::uint64_t>(period)});
}

void PeriodShuffle::shuffle(std::uint64_t tweak, std::int64_t size, std::uint16_t* slots) noexcept {
  std::iota(slots, slots + size, std::uint16_t{0});
  exchange(tweak, static_cast<std::size_t>(size), slots);
}

void PeriodShuffle::first_slots(std::uint64_t tweak, std::int64_t period, std::int64_t size,
                                std::int64_t count, std::uint32_t* slots) const noexcept {
  if (period <= kTableSlots) {
    std::uint16_t table[kTableSlots];
    shuffle(tweak, size, table);
    std::copy_n(table, count, slots);
    return;
  }
  ManyPermutations lanes(keys_);
  for (std::int64_t done = 0; done < count; done += static_cast<std::int64_t>(kLanes)) {
    const std::int64_t used = std::min(count - done, static_cast<std::int64_t>(kLanes));
    lanes.clear();
    for (std::int64_t i = 0; i < used; ++i) lanes.add(size, tweak, done + i);
    lanes.run();
    for (std::int64_t i = 0; i < used; ++i) {
      slots[done + i] = static_cast<std::uint32_t>(lanes.result(static_cast<std::size_t>(i)));
    }
  }
}

}  // namespace tfrfast
