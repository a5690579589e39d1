#include "tensorflow/steps_ahead.h"

#include <algorithm>
#include <utility>

namespace tfrfast::tensorflow {
namespace {

// Up to 16 calls run at once, and each call reads up to 8 small batches. So this many steps may
// come out of order.
constexpr std::uint64_t kMinSlack = 16;
constexpr std::uint64_t kMaxSlack = 128;
constexpr std::uint64_t kSlackBytes = std::uint64_t{256} << 20;
// Withdrawing examines each step separately.
constexpr std::uint64_t kMaxSteps = 4096;
// A kernel serves several iterations if their datasets share a function. If none of the last
// kIdleCalls calls belongs to an iteration, the iteration was abandoned, for example by restoring a
// checkpoint.
constexpr std::uint64_t kIdleCalls = 64;

}  // namespace

StepsAhead::IterationPlace::IterationPlace(Course course, std::int64_t first)
    : course_(std::move(course)),
      read_ahead_(course_.source->records()->mean_record_bytes(), true) {
  const auto left = static_cast<std::uint64_t>(std::max<std::int64_t>(course_.steps - first, 1));
  distance_ = remote_ahead(
      course_.source->records()->mean_record_bytes(), left,
      [this, first](std::uint64_t batch) {
        return course_.records(first + static_cast<std::int64_t>(batch));
      },
      course_.together_bytes);
  distance_.batches = std::min(distance_.batches, kMaxSteps);
  slack_ = static_cast<std::int64_t>(
      std::clamp(kSlackBytes / distance_.batch_bytes, kMinSlack, kMaxSlack));
  // Calls of earlier steps may be slower than the first.
  begin_ = std::max<std::int64_t>(first - slack_, 0);
  first_ = announced_ = first;
  is_taken_.resize(static_cast<std::size_t>(first - begin_));
}

void StepsAhead::IterationPlace::announce(std::int64_t begin, std::int64_t end) {
  std::vector<std::int64_t> records;
  for (std::int64_t step = begin; step < end; ++step) {
    const std::vector<std::int64_t> more = course_.records(step);
    records.insert(records.end(), more.begin(), more.end());
  }
  announcements_.add(static_cast<std::uint64_t>(end),
                     course_.source->records()->announce(records, read_ahead_).files);
}

void StepsAhead::IterationPlace::announce_after(std::int64_t step) {
  if (step < first_) announce(step, step + 1);
  const auto together = static_cast<std::int64_t>(distance_.together);
  const std::int64_t last =
      step + std::min(static_cast<std::int64_t>(distance_.batches), course_.steps - 1 - step);
  while (announced_ <= last) {
    const std::int64_t count = announced_ <= step ? 1 : together;
    const std::int64_t end = std::min(announced_ + count, course_.steps);
    announce(announced_, end);
    announced_ = end;
    is_taken_.resize(static_cast<std::size_t>(end - begin_));
  }
}

void StepsAhead::IterationPlace::end_first_step() {
  const bool is_gap = !is_taken_.front();
  // Steps that no call has taken may belong to another process. After one gap, more will follow.
  if (is_gap && !is_in_gap_) distance_.batches /= 2;
  is_in_gap_ = is_gap;
  is_taken_.pop_front();
  ++begin_;
}

bool StepsAhead::IterationPlace::take(const Course& course, std::int64_t step) {
  if (course.source != course_.source || course.name != course_.name) return false;
  const std::int64_t at = step - begin_;
  const auto known = static_cast<std::int64_t>(is_taken_.size());
  if (at < 0 || at > known + slack_ || (at < known && is_taken_[static_cast<std::size_t>(at)])) {
    return false;
  }
  announce_after(step);
  is_taken_[static_cast<std::size_t>(at)] = true;
  while (!is_taken_.empty() && (is_taken_.front() || begin_ < step - slack_)) end_first_step();
  // Steps taken recently may not have been read yet.
  announcements_.come_to(static_cast<std::uint64_t>(std::max<std::int64_t>(step - slack_, 0)));
  return true;
}

bool StepsAhead::come_to(const std::shared_ptr<const Source>& source, std::int64_t step,
                         const std::function<Course()>& course) {
  if (!source->records()->is_remote()) return false;
  const Course here = course();
  if (step < 0 || step >= here.steps) return false;
  std::list<IterationPlace> left;  // withdraws without the lock
  const std::lock_guard lock(mutex_);
  ++calls_;
  for (auto each = places_.begin(); each != places_.end();) {
    const auto next = std::next(each);
    if (calls_ - each->last_call > kIdleCalls) left.splice(left.end(), places_, each);
    each = next;
  }
  auto taken = std::find_if(places_.begin(), places_.end(),
                            [&](IterationPlace& each) { return each.take(here, step); });
  if (taken == places_.end()) {
    taken = places_.emplace(places_.end(), here, step);
    taken->take(here, step);
  }
  taken->last_call = calls_;
  return true;
}

}  // namespace tfrfast::tensorflow
