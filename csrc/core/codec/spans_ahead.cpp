#include "core/codec/spans_ahead.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "core/base/fork.h"

namespace tfrfast {
namespace {

// One for all, so that fork() can wait for it.
constinit std::mutex all_spans;
std::mutex& spans_mutex() {
  return all_spans;
}
[[maybe_unused]] const int kSpansGuarded = make_fork_wait_for<spans_mutex>();

}  // namespace

bool SpansAhead::expect(std::size_t span, std::uint64_t bytes, bool is_inflated) {
  const std::lock_guard lock(spans_mutex());
  Expected& expected = spans_[span];
  expected.bytes += bytes;
  return !is_inflated && !std::exchange(expected.is_asked_for, true);
}

bool SpansAhead::settle(std::size_t span, std::uint64_t bytes) {
  const std::lock_guard lock(spans_mutex());
  const auto found = spans_.find(span);
  if (found == spans_.end()) return false;
  Expected& expected = found->second;
  expected.bytes -= std::min(expected.bytes, bytes);
  if (expected.bytes > 0) return false;
  const bool is_asked_for = expected.is_asked_for;
  spans_.erase(found);
  return is_asked_for;
}

bool SpansAhead::take(std::size_t span) {
  const std::lock_guard lock(spans_mutex());
  const auto found = spans_.find(span);
  return found != spans_.end() && std::exchange(found->second.is_asked_for, false);
}

bool SpansAhead::is_asked_for(std::size_t span) const {
  const std::lock_guard lock(spans_mutex());
  const auto found = spans_.find(span);
  return found != spans_.end() && found->second.is_asked_for;
}

void SpansAhead::forget() noexcept {
  std::map<std::size_t, Expected> forgotten;
  const std::lock_guard lock(spans_mutex());
  spans_.swap(forgotten);
}

}  // namespace tfrfast
