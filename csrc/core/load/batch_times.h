// When a worker made a batch.
#pragma once

#include <chrono>
#include <cstdint>

namespace tfrfast {

inline std::int64_t now_ns() noexcept {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

// In nanoseconds of now_ns(). All 0 unless batches are timed.
struct BatchTimes {
  std::uint32_t worker = 0;
  std::int64_t waited_from = 0;  // when a wait for space began, before the batch; 0 without a wait
  std::int64_t begin = 0;
  std::int64_t read = 0;  // the time of reading; the rest is decoding
  std::int64_t end = 0;
};

}  // namespace tfrfast
