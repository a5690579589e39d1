// The limit on memory. A larger request from a file is refused before anything is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>

namespace tfrfast {

// The memory that this process may use: the machine's memory or the cgroup's limit, whichever is
// smaller. Looked up once. Never 0.
std::uint64_t max_memory_bytes() noexcept;

// The limit for one padded column: a quarter of memory. One long row pads all rows of its batch,
// and several batches are made ahead.
inline std::uint64_t max_padded_bytes() noexcept {
  return max_memory_bytes() / 4;
}

// Returns the sum, or the largest number if the sum overflows.
constexpr std::uint64_t add_or_max(std::uint64_t a, std::uint64_t b) noexcept {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  return b > kMax - a ? kMax : a + b;
}

// Thrown when memory cannot hold `wanted_bytes`. The object contains its text, because there may be
// no memory for a string.
class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(std::uint64_t wanted_bytes) noexcept;
  const char* what() const noexcept override { return text_; }

 private:
  char text_[128];
};

// The size of `count` values of type T. Throws OutOfMemory if no memory could hold the values.
template <class T>
std::size_t bytes_for(std::size_t count) {
  if (count > max_memory_bytes() / sizeof(T)) {
    std::size_t bytes;
    const bool overflows = __builtin_mul_overflow(count, sizeof(T), &bytes);
    throw OutOfMemory(overflows ? std::numeric_limits<std::size_t>::max() : bytes);
  }
  return count * sizeof(T);
}

}  // namespace tfrfast
