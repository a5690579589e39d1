#include "core/storage/local/settled.h"

#include <time.h>

#include <chrono>
#include <thread>

#include "core/base/platform.h"
#include "core/storage/local/local_facts.h"

namespace tfrfast {
namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr int kMaxWaits = 100;

std::int64_t time_ns(clockid_t clock) noexcept {
  timespec now = {};
  ::clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * kSecondNs + now.tv_nsec;
}

// The last tick of the clock for file times, or an earlier time.
std::int64_t last_tick_ns() noexcept {
#if defined(TFRFAST_LINUX) && defined(CLOCK_REALTIME_COARSE)
  return time_ns(CLOCK_REALTIME_COARSE);
#else
  constexpr std::int64_t kLongestTickNs = 20'000'000;
  return time_ns(CLOCK_REALTIME) - kLongestTickNs;
#endif
}

}  // namespace

bool is_settled(const FileFacts& facts, std::int64_t now_ns, std::int64_t tick_ns) noexcept {
  // If ctime counts, a modification time in the future was set by hand, and the next change
  // replaces it.
  const bool is_future = facts.mtime_ns > now_ns;
  if (facts.mtime_ns > now_ns - kRecentNs && !(is_future && facts.version_lasts)) return false;
  if (!facts.version_lasts) return true;
  const bool keeps_seconds_only = ctime_ns_of(facts) % kSecondNs == 0;
  return ctime_ns_of(facts) < tick_ns - (keeps_seconds_only ? kRecentNs : 0);
}

bool await_settled(const FileFacts& facts) noexcept {
  for (int waits = 0; facts.version_lasts && waits < kMaxWaits; ++waits) {
    if (last_tick_ns() > ctime_ns_of(facts)) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const std::int64_t tick_ns = last_tick_ns();
  return is_settled(facts, time_ns(CLOCK_REALTIME), tick_ns);
}

}  // namespace tfrfast
