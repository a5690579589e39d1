// Summarises many values: their range, how many differ, and the most frequent values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/example/number_sums.h"
#include "core/example/wire.h"

namespace tfrfast {

// Takes values one after the other. Memory does not grow with the number of values. All values of
// one summary have one kind. One thread at a time.
//
// All counts are exact up to kTracked different values. Beyond, the number of different values is
// an estimate (HyperLogLog, 4,096 registers: 1.6 %), and counts of frequent values are too low by
// at most uncounted() (Misra and Gries).
class ValueSummary {
 public:
  static constexpr std::size_t kTracked = 2048;

  ValueSummary();

  void add(std::span<const std::int64_t> ints);
  void add(std::span<const float> floats);
  void add(WireBytes string);

  // The sums of all numbers. Strings are only counted.
  const NumberSums& numbers() const noexcept { return numbers_; }

  bool is_exact() const noexcept { return uncounted_ == 0; }
  std::uint64_t uncounted() const noexcept { return uncounted_; }
  double distinct() const;

  struct Frequent {
    std::uint64_t bits = 0;  // bits of the int or the float
    std::string string;      // the string's first kShownBytes
    std::uint64_t count = 0;
  };
  static constexpr std::size_t kShownBytes = 64;
  std::vector<Frequent> most_frequent(std::size_t wanted) const;

 private:
  struct CountedValue {
    std::uint64_t hash = 0;
    std::uint64_t count = 0;  // 0: free
    std::uint64_t value = 0;  // bits, or the index of the string
  };
  static constexpr std::size_t kSlots = 4 * kTracked;
  static constexpr unsigned kRegisterBits = 12;

  template <class MakeValue>
  void track(std::uint64_t hash, const MakeValue& make_value);
  void forget_rare();

  std::vector<CountedValue> slots_;
  std::size_t used_ = 0;
  std::vector<std::string> strings_;
  std::vector<std::uint8_t> registers_;
  NumberSums numbers_;
  std::uint64_t uncounted_ = 0;
};

}  // namespace tfrfast
