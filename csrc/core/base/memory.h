// How much memory there can be. A file that asks for more is refused before anything is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>

namespace tfrfast {

// The most that this process may use: the machine's memory or the cgroup's limit, whichever is
// less. Looked up once. Never 0.
std::uint64_t max_memory_bytes() noexcept;

// The most that one padded column may take: a quarter of it, since one long row in a record makes
// all rows of its batch as long, and several batches are made ahead.
inline std::uint64_t max_padded_bytes() noexcept {
  return max_memory_bytes() / 4;
}

// The sum, or the largest number there is.
constexpr std::uint64_t add_or_max(std::uint64_t a, std::uint64_t b) noexcept {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  return b > kMax - a ? kMax : a + b;
}

// Thrown when memory cannot hold `wanted_bytes`. The text is part of the object, because there may
// be no memory for a string.
class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(std::uint64_t wanted_bytes) noexcept;
  const char* what() const noexcept override { return text_; }

 private:
  char text_[128];
};

// The bytes of `count` values of type T. Throws OutOfMemory if no memory could hold them.
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
