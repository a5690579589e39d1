#include "tensorflow/requests.h"

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

// Iterations share a kernel if their datasets share a function.
constexpr std::size_t kHeldSources = 4;

[[noreturn]] void refuse(const char* numbers) {
  throw Error(ErrorKind::invalid, std::string("A dataset's steps are given by ") + numbers);
}

// Locates the records of a batch in their source.
void locate(BatchRows& batch, std::shared_ptr<const Source> source) {
  batch.source = std::move(source);
  const Reader* const frames = batch.source->records()->reader();
  if (frames == nullptr) return;
  batch.rows.resize(batch.records.size());
  frames->locate(batch.records, batch.rows.data());
}

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

Requests::~Requests() {
  for (const std::shared_ptr<const Source>& source : held_) source->withdraw();
}

std::shared_ptr<const Source> Requests::hold(std::shared_ptr<const Source> source) {
  std::shared_ptr<const Source> dropped;  // closed without the lock
  const std::lock_guard lock(mutex_);
  const auto at = std::find(held_.begin(), held_.end(), source);
  if (at != held_.end()) {
    std::rotate(held_.begin(), at, at + 1);
    return source;
  }
  held_.insert(held_.begin(), source);
  if (held_.size() > kHeldSources) {
    dropped = std::move(held_.back());
    held_.pop_back();
  }
  return source;
}

Request Requests::find(std::string_view source, std::string_view order,
                       std::span<const std::int64_t> place, std::span<const TString> errors,
                       bool with_draws) {
  if (order.empty()) return of_walk(source, place, errors);
  if (order.starts_with(Plan::kEncoding.tag)) return of_plan(source, order, place, with_draws);
  return of_sequence(source, order, place);
}

std::pair<std::shared_ptr<const Share>, std::int64_t> Requests::begin_share(std::string_view text,
                                                                            std::string_view order,
                                                                            Files files) {
  const Begun begun = begin_source(text);
  return {share_of(hold(begun.source), files, sequences_.get(order)), begun.edition};
}

std::shared_ptr<const Share> Requests::share_of(const std::shared_ptr<const Source>& source,
                                                Files files,
                                                const std::shared_ptr<const Sequence>& sequence) {
  return shares_.get([&](const Share& last) { return last.is_of(*source, files, *sequence); },
                     [&] { return Share(source, files, sequence); });
}

Request Requests::of_sequence(std::string_view source, std::string_view order,
                              std::span<const std::int64_t> place) {
  const auto sequence = sequences_.get(order);
  if (place.size() != 6 || place[3] < 0 || place[4] < 0 || place[5] <= place[4]) {
    refuse(
        "a key, files as a first one and a stride, the edition, the first step, and a larger end.");
  }
  const auto seed = static_cast<std::uint64_t>(place[0]);
  const Files files = files_of(place.subspan(1, 2));
  const std::int64_t edition = place[3];
  const std::int64_t begin = place[4];
  return {place[5] - begin, sequence->drop_remainder, [=, this](std::int64_t number) {
            const auto share = share_of(hold(open_source(source, edition)), files, sequence);
            ahead_.come_to(share->source(), begin + number, [&] {
              std::string name(head_of(order));
              for (const auto each : {static_cast<std::int64_t>(seed), files.first, files.stride}) {
                name.append(" ").append(std::to_string(each));
              }
              return Course{share->source(), std::move(name), share->batch_count(),
                            [=](std::int64_t step) { return share->records_of_batch(seed, step); }};
            });
            BatchRows batch;
            batch.records = share->records_of_batch(seed, begin + number);
            locate(batch, share->source());
            return batch;
          }};
}

Request Requests::of_plan(std::string_view text, std::string_view order,
                          std::span<const std::int64_t> place, bool with_draws) {
  if (place.size() != 4) refuse("a key, the first epoch, the number of steps, and a step.");
  const auto plan =
      plans_.get([&](const LoadingPlan& last) { return last.is_of(order, place[1], place[0]); },
                 [&] { return LoadingPlan(order, place[1], place[0]); });
  const std::int64_t steps = place[2];
  const std::int64_t step = place[3];
  return {1, false, [=, this](std::int64_t) {
            BatchRows batch = plan->rows(step, with_draws);
            const std::shared_ptr<const Source> source = open(text);
            ahead_.come_to(source, step, [&] {
              return Course{source, plan->name() + " " + std::to_string(steps), steps,
                            [plan](std::int64_t each) { return plan->rows(each).records; }};
            });
            locate(batch, source);
            batch.files.push_back(plan);
            return batch;
          }};
}

std::shared_ptr<const Source> Requests::open(std::string_view text, bool begins) {
  return hold(begins ? begin_source(text).source : open_source(text));
}

Request Requests::of_walk(std::string_view source, std::span<const std::int64_t> batches,
                          std::span<const TString> errors) {
  if (errors.empty() || batches.size() % errors.size() != 0) refuse_place();
  const std::size_t width = batches.size() / errors.size();
  Request request;
  for (std::size_t at = 0; at < batches.size(); at += width) request.count += batches[at] >= 0;
  if (request.count > 0) request.is_full = WalkedBatch(batches.first(width)).wanted.is_full;
  request.rows = [=, this](std::int64_t number) {
    const auto at = static_cast<std::size_t>(number);
    WalkedBatch walked(batches.subspan(at * width, width));
    BatchRows batch;
    if (walked.rows > 0) batch = find_rows(open(source), walked);
    if (!errors[at].read().empty()) batch.error = errors[at].read();
    return batch;
  };
  return request;
}

}  // namespace tfrfast::tensorflow
