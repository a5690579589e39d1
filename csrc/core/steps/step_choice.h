// Some of many steps, in the order of their numbers.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tfrfast {

// Takes a bit for each of all steps. Immutable.
class StepChoice {
 public:
  // Bit i of byte k says whether step 8 k + i is chosen. Throws Error invalid unless there are as
  // many bytes as `all_steps` need, and no bit beyond them is set.
  StepChoice(std::string_view bits, std::uint64_t all_steps);

  std::uint64_t count() const noexcept { return before_.back(); }
  // The number of the chosen step at that place. There are more than `place`.
  std::uint64_t number(std::uint64_t place) const noexcept;
  // How many chosen steps have a number below `end`, which is at most that of all steps.
  std::uint64_t count_below(std::uint64_t end) const noexcept;

 private:
  static constexpr std::size_t kBlockWords = 8;

  std::vector<std::uint64_t> words_;
  std::vector<std::uint64_t> before_;  // each block, and all: chosen steps
};

}  // namespace tfrfast
