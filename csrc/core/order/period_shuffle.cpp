#include "core/order/period_shuffle.h"

#include <numeric>

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

}  // namespace tfrfast
