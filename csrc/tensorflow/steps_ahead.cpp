#include "tensorflow/steps_ahead.h"

#include <algorithm>
#include <exception>
#include <iterator>
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

StepsAhead::StepsAhead(Course course, std::int64_t first)
    : course_(std::move(course)),
      begin_(first),
      lowest_(first),
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
}

bool StepsAhead::is_taken(std::int64_t step) const {
  const std::int64_t place = step - begin_;
  if (place < 0) return step >= lowest_;
  return place < static_cast<std::int64_t>(is_taken_.size()) &&
         is_taken_[static_cast<std::size_t>(place)];
}

bool StepsAhead::may_be_here(std::int64_t step) const {
  if (is_taken(step)) return false;
  if (step < lowest_) return lowest_ - step <= slack_;
  return step - begin_ <= static_cast<std::int64_t>(is_taken_.size()) + slack_;
}

void StepsAhead::announce(std::int64_t begin, std::int64_t end) {
  std::vector<std::int64_t> records;
  for (std::int64_t step = begin; step < end; ++step) {
    const std::vector<std::int64_t> more = course_.records(step);
    records.insert(records.end(), more.begin(), more.end());
  }
  announced_.add(static_cast<std::uint64_t>(end),
                 course_.source->records()->announce(records, read_ahead_).files);
}

// Moves the begin: another call of this iteration was faster than the first.
void StepsAhead::begin_earlier(std::int64_t step) {
  for (; begin_ > lowest_; --begin_) is_taken_.push_front(true);
  for (; begin_ > step; --begin_) is_taken_.push_front(false);
  const std::int64_t end = std::exchange(lowest_, step);
  for (; step < end; ++step) announce(step, step + 1);
}

void StepsAhead::announce_after(std::int64_t step) {
  const auto together = static_cast<std::int64_t>(distance_.together);
  const std::int64_t last =
      step + std::min(static_cast<std::int64_t>(distance_.batches), course_.steps - 1 - step);
  for (;;) {
    const std::int64_t end = begin_ + static_cast<std::int64_t>(is_taken_.size());
    if (end > last) return;
    const std::int64_t count = end <= step ? 1 : std::min(together, course_.steps - end);
    is_taken_.insert(is_taken_.end(), static_cast<std::size_t>(count), false);
    announce(end, end + count);
  }
}

// Ends all steps before `step`. Steps that no call has taken may belong to another process.
void StepsAhead::pass_over(std::int64_t step) {
  while (begin_ < step && !is_taken_.empty()) {
    const bool is_gap = !is_taken_.front();
    // After one gap, more gaps will follow.
    if (is_gap && !is_in_gap_) distance_.batches /= 2;
    end_first_step();
    is_in_gap_ = is_gap;
  }
}

void StepsAhead::end_first_step() {
  is_taken_.pop_front();
  ++begin_;
  is_in_gap_ = false;
}

bool StepsAhead::take(const Course& course, std::int64_t step) {
  const std::lock_guard lock(mutex_);
  if (course.source != course_.source || course.name != course_.name) return false;
  if (!may_be_here(step)) return false;
  if (step < lowest_) begin_earlier(step);
  announce_after(step);
  is_taken_[static_cast<std::size_t>(step - begin_)] = true;
  while (!is_taken_.empty() && is_taken_.front()) end_first_step();
  pass_over(step - slack_);
  // Steps taken recently may not have been read yet.
  announced_.come_to(static_cast<std::uint64_t>(std::max<std::int64_t>(step - slack_, 0)));
  return true;
}

std::shared_ptr<StepsAhead> Places::take(const Course& course, std::int64_t step) {
  const std::lock_guard lock(mutex_);
  std::erase_if(places_, [](const std::weak_ptr<StepsAhead>& each) { return each.expired(); });
  for (const std::weak_ptr<StepsAhead>& each : places_) {
    std::shared_ptr<StepsAhead> place = each.lock();
    if (place != nullptr && place->take(course, step)) return place;
  }
  auto place = std::make_shared<StepsAhead>(course, step);
  place->take(course, step);
  places_.push_back(place);
  return place;
}

bool PlaceHolder::come_to(const std::shared_ptr<const Source>& source, std::int64_t step,
                          const std::function<Course()>& course) {
  if (!source->records()->is_remote()) return false;
  std::vector<Held> left;  // withdraws without the lock
  std::vector<std::shared_ptr<StepsAhead>> places;
  {
    const std::lock_guard lock(mutex_);
    ++calls_;
    const auto is_left = [this](const Held& each) { return calls_ - each.last_call > kIdleCalls; };
    const auto first_left = std::stable_partition(held_.begin(), held_.end(), std::not_fn(is_left));
    std::move(first_left, held_.end(), std::back_inserter(left));
    held_.erase(first_left, held_.end());
    for (const Held& each : held_) places.push_back(each.place);
  }
  const Course here = course();
  if (step < 0 || step >= here.steps) return false;
  std::shared_ptr<StepsAhead> taken;
  for (const auto& each : places) {
    if (!each->take(here, step)) continue;
    taken = each;
    break;
  }
  if (taken == nullptr) taken = source->places().take(here, step);
  const std::lock_guard lock(mutex_);
  std::erase_if(held_, [&taken](const Held& each) { return each.place == taken; });
  held_.insert(held_.begin(), {taken, calls_});
  return true;
}

}  // namespace tfrfast::tensorflow
