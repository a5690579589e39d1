// A choice of steps, in the order of their numbers.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tfrfast {

// Takes a bit per step. Immutable.
class StepChoice {
 public:
  // Bit i of byte k chooses step 8 k + i. Throws Error invalid unless `bits` has exactly the bytes
  // that `all_steps` bits need, and no further bit is set.
  StepChoice(std::string_view bits, std::uint64_t all_steps);

  std::uint64_t count() const noexcept { return before_.back(); }
  // The number of the chosen step at `place`, which must be below count().
  std::uint64_t number(std::uint64_t place) const noexcept;
  // The number of chosen steps below step `end`, which must be at most the number of all steps.
  std::uint64_t count_below(std::uint64_t end) const noexcept;

 private:
  static constexpr std::size_t kBlockWords = 8;

  std::vector<std::uint64_t> words_;
  std::vector<std::uint64_t> before_;  // chosen steps before each block, then in all
};

}  // namespace tfrfast
