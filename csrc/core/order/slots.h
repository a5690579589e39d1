// Shares the positions of a period among the sources of a mixture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tfrfast {

inline constexpr std::int64_t kMaxPeriod = std::int64_t{1} << 20;
inline constexpr std::size_t kMaxSources = 1024;

// One slot per position. Each source owns a range of slots. Immutable after spread(). Any number of
// threads. Holds 2 bytes per slot, and 4 more if the slots are spread.
class Slots {
 public:
  // At most kMaxSources sources, with at most kMaxPeriod slots together.
  explicit Slots(std::vector<std::int64_t> owned);

  // Gives each position a slot. At every position, each source has had about its share of the
  // period: the source's weight over the sum of `weights`.
  void spread(std::span<const std::int64_t> weights);

  std::size_t sources() const noexcept { return owned_.size(); }
  std::int64_t size() const noexcept { return first_.back(); }
  std::int64_t owned(std::size_t source) const noexcept { return owned_[source]; }
  std::int64_t first(std::size_t source) const noexcept { return first_[source]; }
  std::size_t source(std::int64_t slot) const noexcept {
    return source_of_[static_cast<std::size_t>(slot)];
  }

  // Only after spread(). A source's slots stand at ascending positions.
  std::int64_t slot_at(std::int64_t position) const noexcept {
    return slot_at_[static_cast<std::size_t>(position)];
  }

 private:
  std::vector<std::int64_t> owned_;
  std::vector<std::int64_t> first_;  // the last entry is the number of slots
  std::vector<std::uint16_t> source_of_;
  std::vector<std::uint32_t> slot_at_;
};

// Shares `count` slots, fewer than the sum of the weights, by largest remainders. Of equal
// remainders, the first source gets the slot.
std::vector<std::int64_t> largest_remainders(std::span<const std::int64_t> weights,
                                             std::int64_t count);

}  // namespace tfrfast
