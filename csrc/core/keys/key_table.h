// Sorted hashes of keys, each with the number of a record.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace tfrfast {

// A view of memory that the caller owns. Entries with equal hashes are ordered by record number.
// Any number of threads. With unexpected contents, results are wrong, but nothing outside the
// memory is read.
class KeyTable {
 public:
  // `numbers` holds `number_bytes` bytes (1 to 8) per hash, little-endian.
  KeyTable(std::span<const std::uint64_t> hashes, const std::uint8_t* numbers,
           unsigned number_bytes) noexcept
      : hashes_(hashes), numbers_(numbers), number_bytes_(number_bytes) {}

  bool has(std::size_t entry, std::uint64_t hash) const noexcept {
    return entry < hashes_.size() && hashes_[entry] == hash;
  }
  std::int64_t number(std::size_t entry) const noexcept {
    std::uint64_t number = 0;
    std::memcpy(&number, numbers_ + entry * number_bytes_, number_bytes_);
    return static_cast<std::int64_t>(number);
  }

  // The first entry whose hash is not less than `hash`. Hashes are spread evenly, so the entry lies
  // close to its place among equally spaced hashes. The search begins there and doubles its steps.
  std::size_t first_entry(std::uint64_t hash) const noexcept {
    const std::size_t count = hashes_.size();
    if (count == 0) return 0;
    const std::size_t guess = guess_of(hash);
    std::size_t low = guess, high = guess, step = 16;
    if (hashes_[guess] < hash) {
      while (high < count && hashes_[high] < hash) {
        low = high;
        high = step < count - high ? high + step : count;
        step *= 2;
      }
    } else {
      while (low > 0 && hashes_[low] >= hash) {
        high = low;
        low = step < low ? low - step : 0;
        step *= 2;
      }
    }
    const auto* const begin = hashes_.data();
    return static_cast<std::size_t>(std::lower_bound(begin + low, begin + high, hash) - begin);
  }

  std::size_t guess_of(std::uint64_t hash) const noexcept {
    const auto product = static_cast<unsigned __int128>(hash) * hashes_.size();
    return static_cast<std::size_t>(product >> 64);
  }
  void prefetch(std::uint64_t hash) const noexcept {
    if (!hashes_.empty()) __builtin_prefetch(hashes_.data() + guess_of(hash));
  }

 private:
  std::span<const std::uint64_t> hashes_;
  const std::uint8_t* numbers_;
  unsigned number_bytes_;
};

}  // namespace tfrfast
