// What the threads of a loader did, and when.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace tfrfast {

// Notes nothing until begin(). Safe from many threads.
class Timeline {
 public:
  enum class Act : std::uint8_t {
    load,   // a worker read and decoded a batch
    space,  // a worker waited until a batch was taken
  };
  struct Event {
    Act act = Act::load;
    std::uint32_t worker = 0;
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
    std::int64_t read_ns = 0;  // the part of `load` that read
  };

  static std::int64_t now_ns() noexcept {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  }

  // Notes the next `most` events, and forgets all others.
  void begin(std::size_t most) {
    const std::lock_guard lock(mutex_);
    events_.clear();
    events_.reserve(most);
    is_on_.store(most > 0, std::memory_order_relaxed);
  }

  bool is_on() const noexcept { return is_on_.load(std::memory_order_relaxed); }

  void add(const Event& event) noexcept {
    const std::lock_guard lock(mutex_);
    if (events_.size() < events_.capacity()) events_.push_back(event);
    if (events_.size() == events_.capacity()) is_on_.store(false, std::memory_order_relaxed);
  }

  std::vector<Event> events() const {
    const std::lock_guard lock(mutex_);
    return events_;
  }

 private:
  std::atomic<bool> is_on_{false};
  mutable std::mutex mutex_;
  std::vector<Event> events_;
};

}  // namespace tfrfast
