#include "core/steps/step_choice.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "core/base/error.h"

namespace tfrfast {

StepChoice::StepChoice(std::string_view bits, std::uint64_t all_steps) {
  const bool has_rest = all_steps % 8 != 0;
  if (bits.size() != all_steps / 8 + has_rest ||
      (has_rest && static_cast<std::uint8_t>(bits.back()) >> all_steps % 8 != 0)) {
    const std::string steps = std::to_string(all_steps);
    throw Error(ErrorKind::invalid, "A choice among " + steps + " steps must be " + steps +
                                        " bits, then zeros up to a whole byte. This one has " +
                                        std::to_string(bits.size()) + " bytes.");
  }
  words_.resize((bits.size() + 7) / 8);
  if (!bits.empty()) std::memcpy(words_.data(), bits.data(), bits.size());
  std::uint64_t count = 0;
  for (std::size_t word = 0; word < words_.size(); ++word) {
    if (word % kBlockWords == 0) before_.push_back(count);
    count += static_cast<unsigned>(std::popcount(words_[word]));
  }
  before_.push_back(count);
}

std::uint64_t StepChoice::number(std::uint64_t place) const noexcept {
  const auto after = std::upper_bound(before_.begin(), before_.end(), place);
  const auto block = static_cast<std::size_t>(after - before_.begin()) - 1;
  std::uint64_t left = place - before_[block];
  std::size_t word = block * kBlockWords;
  for (;; ++word) {
    const auto here = static_cast<unsigned>(std::popcount(words_[word]));
    if (left < here) break;
    left -= here;
  }
  std::uint64_t bits = words_[word];
  for (; left > 0; --left) bits &= bits - 1;
  return word * 64 + static_cast<unsigned>(std::countr_zero(bits));
}

std::uint64_t StepChoice::count_below(std::uint64_t end) const noexcept {
  const auto last = static_cast<std::size_t>(end / 64);
  std::size_t word = last / kBlockWords * kBlockWords;
  if (word >= words_.size()) return count();
  std::uint64_t below = before_[word / kBlockWords];
  for (; word < last; ++word) below += static_cast<unsigned>(std::popcount(words_[word]));
  if (end % 64 != 0) {
    below += static_cast<unsigned>(std::popcount(words_[last] << (64 - end % 64)));
  }
  return below;
}

}  // namespace tfrfast
