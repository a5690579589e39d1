// What many values have in common: their range, how many differ, which are the most frequent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/example/wire.h"

namespace tfrfast {

// Takes values one after the other, in memory that does not grow with their number. One kind of
// values each. One thread at a time.
//
// As long as at most kTracked different values were seen, all counts are exact. After that, the
// number of different values is an estimate (HyperLogLog, 4,096 registers: 1.6 %), and counts of
// frequent values are by up to uncounted() too low (Misra and Gries).
class ValueSummary {
 public:
  static constexpr std::size_t kTracked = 2048;

  ValueSummary();

  void add(std::span<const std::int64_t> ints);
  void add(std::span<const float> floats);
  void add(WireBytes string);

  std::uint64_t count() const noexcept { return count_; }
  std::uint64_t not_numbers() const noexcept { return not_numbers_; }  // NaN, not in the following
  double sum() const noexcept { return sum_; }
  // Of all values so far; nothing if there are none.
  std::int64_t min_int() const noexcept { return min_int_; }
  std::int64_t max_int() const noexcept { return max_int_; }
  float min_float() const noexcept { return min_float_; }
  float max_float() const noexcept { return max_float_; }

  bool is_exact() const noexcept { return uncounted_ == 0; }
  std::uint64_t uncounted() const noexcept { return uncounted_; }
  double distinct() const;

  struct Frequent {
    std::uint64_t bits = 0;  // of the int or the float
    std::string string;      // its first kShownBytes
    std::uint64_t count = 0;
  };
  static constexpr std::size_t kShownBytes = 64;
  std::vector<Frequent> most_frequent(std::size_t wanted) const;

 private:
  struct Slot {
    std::uint64_t hash = 0;
    std::uint64_t count = 0;  // 0: free
    std::uint64_t value = 0;  // bits, or the number of the string
  };
  static constexpr std::size_t kSlots = 4 * kTracked;
  static constexpr unsigned kRegisterBits = 12;

  template <class MakeValue>
  void track(std::uint64_t hash, const MakeValue& make_value);
  void forget_rare();

  std::vector<Slot> slots_;
  std::size_t used_ = 0;
  std::vector<std::string> strings_;
  std::vector<std::uint8_t> registers_;
  std::uint64_t count_ = 0;
  std::uint64_t not_numbers_ = 0;
  std::uint64_t uncounted_ = 0;
  double sum_ = 0;
  std::int64_t min_int_ = 0, max_int_ = 0;
  float min_float_ = 0, max_float_ = 0;
};

}  // namespace tfrfast
