#include "core/load/workers.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <utility>

#include "core/base/thread.h"
#include "core/base/waiting.h"
#include "core/load/image_draws.h"
#include "core/load/remote_ahead.h"

namespace tfrfast {
namespace {

constexpr std::memory_order kRelaxed = std::memory_order_relaxed;

// 0 if an epoch reads a small part of the records.
std::uint64_t epoch_bytes(const RecordSource& source, const Plan& plan) noexcept {
  const std::uint64_t records = source.record_count();
  if (static_cast<std::uint64_t>(plan.positions()) < records / 2) return 0;
  return bytes_of_epoch(records, source.mean_record_bytes());
}

}  // namespace

// Plans batches, one at a time. The order of an epoch and the memory are reused.
class Workers::Planner {
 public:
  const PlannedBatch& batch(const PlanRun::Step& step) {
    if (epoch_ == nullptr || plan_ != step.plan || epoch_number_ != step.epoch) {
      epoch_ = step.plan->of_epoch(step.epoch);
      plan_ = step.plan;
      epoch_number_ = step.epoch;
    }
    plan_->batch(*epoch_, step.step, batch_);
    return batch_;
  }

 private:
  const Plan* plan_ = nullptr;
  std::uint64_t epoch_number_ = 0;
  std::unique_ptr<const EpochOrder> epoch_;
  PlannedBatch batch_;
};

Workers::Workers(std::shared_ptr<const RecordSource> source,
                 std::shared_ptr<const FeatureSchema> features, PlanRun run,
                 const LoaderOptions& options, bool goes_on,
                 std::shared_ptr<LoaderCounters> counters)
    : source_(std::move(source)),
      features_(std::move(features)),
      run_(std::move(run)),
      tracks_presence_(options.tracks_presence),
      counters_(std::move(counters)),
      goes_on_(goes_on),
      outcomes_(options.prefetch),
      read_ahead_(source_->mean_record_bytes(), source_->is_remote(),
                  epoch_bytes(*source_, *run_.whole)) {
  look_at_remote_ahead();
  threads_.reserve(options.threads);
  try {
    while (threads_.size() < options.threads) {
      const auto worker = static_cast<std::uint32_t>(threads_.size());
      threads_.push_back(start_thread([this, worker] { work(worker); }));
    }
  } catch (...) {
    // The system has no more threads, or no memory for them. One thread is enough.
    if (threads_.empty()) throw;
  }
}

Workers::~Workers() {
  stop();
}

void Workers::go_on() noexcept {
  {
    std::lock_guard lock(mutex_);
    if (goes_on_) return;
    goes_on_ = true;
  }
  space_.notify_all();
}

void Workers::stop() noexcept {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  space_.notify_all();
  ready_.notify_all();
  if (threads_.empty()) return;
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  ahead_ = AnnouncedAhead();
}

Workers::Taking Workers::take() {
  Taking taking;
  {
    std::lock_guard lock(mutex_);
    taking.ticket = taken_;
    Outcome& outcome = outcomes_[taken_ % outcomes_.size()];
    if (!outcome.done) return taking;
    if (outcome.error) {
      taking.taken = Taken::error;
      taking.error = outcome.error;
      return taking;
    }
    taking.taken = Taken::batch;
    taking.batch = std::move(outcome.batch);
    outcome = Outcome();
    ++taken_;
    if (consumers_waiting_ > 0) ready_.notify_all();
  }
  space_.notify_one();
  counters_->batches.fetch_add(1, kRelaxed);
  counters_->bytes.fetch_add(taking.batch.payload_bytes, kRelaxed);
  counters_->records.fetch_add(taking.batch.real_rows, kRelaxed);
  return taking;
}

bool Workers::wait_for(std::uint64_t ticket, double seconds) {
  const std::int64_t began = now_ns();
  std::unique_lock lock(mutex_);
  ++consumers_waiting_;
  const bool in_time = ready_.wait_for(lock, std::chrono::duration<double>(seconds), [&] {
    return stopping_ || taken_ != ticket || outcomes_[ticket % outcomes_.size()].done;
  });
  --consumers_waiting_;
  const auto waited = static_cast<std::uint64_t>(now_ns() - began);
  counters_->consumer_waited_ns.fetch_add(waited, kRelaxed);
  return in_time;
}

// Ends a wait for the network once the loader stops.
class Workers::EndIfStopping final : public WaitCheck {
 public:
  explicit EndIfStopping(const std::atomic<bool>& stopping) noexcept : stopping_(stopping) {}
  void check() override {
    if (stopping_) throw ReadCancelled();
  }

 private:
  const std::atomic<bool>& stopping_;
};

void Workers::work(std::uint32_t worker) {
  const EndIfStopping end_if_stopping(stopping_);
  Planner planner;
  Planner ahead;
  const bool needs_draws = features_ != nullptr && features_->needs_draws();
  std::optional<BatchWork> batch_work;
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto may_claim = [this] {
      return stopping_ || (claimed_ < taken_ + outcomes_.size() && claimed_ < limit());
    };
    BatchTimes times{worker, 0, 0, 0, 0};
    if (!may_claim()) {
      times.waited_from = now_ns();
      space_.wait(lock, may_claim);
      const auto waited = static_cast<std::uint64_t>(now_ns() - times.waited_from);
      counters_->workers_waited_ns.fetch_add(waited, kRelaxed);
    }
    if (stopping_) return;
    const std::uint64_t number = claimed_++;
    lock.unlock();
    Outcome result;
    try {
      if (!batch_work) batch_work.emplace(source_, features_, tracks_presence_);
      const bool is_timed = counters_->is_timed.load(kRelaxed);
      if (is_timed) times.begin = now_ns();
      batch_work->time_reading(is_timed);
      announce_after(number, ahead);
      const PlanRun::Step step = run_.at(number);
      const PlannedBatch& batch = planner.batch(step);
      std::vector<std::uint64_t> draws;
      if (needs_draws) draws = image_draws(*step.plan, step.epoch, step.step, batch);
      result.batch = batch_work->load(batch, stopping_, step.epoch, draws);
      if (is_timed) {
        times.read = batch_work->read_ns();
        times.end = now_ns();
        result.batch.times = times;
      }
    } catch (const ReadCancelled&) {
      return;
    } catch (...) {
      result.error = std::current_exception();
    }
    result.done = true;
    lock.lock();
    outcomes_[number % outcomes_.size()] = std::move(result);
    if (number == taken_ && consumers_waiting_ > 0) ready_.notify_all();
  }
}

void Workers::look_at_remote_ahead() {
  announced_ahead_ = outcomes_.size();
  if (!source_->is_remote() || run_.steps_left() == 0) return;
  Planner planner;
  const RemoteAhead remote =
      remote_ahead(source_->mean_record_bytes(), run_.steps_left(), [&](std::uint64_t batch) {
        const std::span<const std::int64_t> records = planner.batch(run_.at(batch)).wanted();
        return std::vector(records.begin(), records.end());
      });
  announced_ahead_ = std::max(announced_ahead_, remote.batches);
  announced_together_ = remote.together;
}

// The first ticket announces all batches up to the distance. Each later ticket announces one more
// batch. If batches share requests, some tickets announce several batches at once.
void Workers::announce_after(std::uint64_t number, Planner& ahead) {
  // Otherwise two workers could announce the same batch.
  std::unique_lock announcing(announcing_, std::defer_lock);
  if (source_->is_remote()) announcing.lock();
  for (;;) {
    std::uint64_t first, count, taken;
    {
      const std::lock_guard lock(mutex_);
      const std::uint64_t end = limit();
      if (stopping_ || announced_ >= end || announced_ > number + announced_ahead_) return;
      first = announced_;
      count = std::min(announced_together_, end - first);
      announced_ += count;
      taken = taken_;
    }
    if (announcing.owns_lock()) ahead_.come_to(taken);
    announce_together(first, count, ahead);
  }
}

void Workers::announce_together(std::uint64_t first, std::uint64_t count, Planner& ahead) {
  std::vector<std::int64_t> numbers;
  std::uint64_t epoch = 0;  // of `numbers`
  const auto announce = [&](std::uint64_t end) {
    if (numbers.empty()) return;
    AnnouncedRows announced = source_->announce(numbers, read_ahead_, epoch);
    numbers.clear();
    counters_->read_ahead_bytes.fetch_add(announced.bytes, kRelaxed);
    // Only a remote storage returns announcements, so `announcing_` is locked.
    if (!announced.files.empty()) ahead_.add(end, std::move(announced.files));
  };
  for (std::uint64_t next = first; next < first + count; ++next) {
    const PlanRun::Step later = run_.at(next);
    if (!source_->is_remote()) read_ahead_.become_local();
    if (!read_ahead_.is_due(later.plan->row_count(later.step))) continue;
    const std::span<const std::int64_t> records = ahead.batch(later).wanted();
    if (later.epoch != epoch) announce(next);
    epoch = later.epoch;
    numbers.insert(numbers.end(), records.begin(), records.end());
  }
  announce(first + count);
}

}  // namespace tfrfast
