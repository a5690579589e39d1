#include "core/load/loader.h"

#include <utility>

#include "core/load/workers.h"

namespace tfrfast {

Loader::Loader(std::shared_ptr<const Reader> reader, PlanOptions plan, LoaderOptions options,
               std::shared_ptr<const FeaturePlan> features)
    : reader_(std::move(reader)),
      features_(std::move(features)),
      plan_options_(std::move(plan)),
      options_(options),
      counters_(std::make_shared<LoaderCounters>()) {
  if (options_.threads < 1 || options_.prefetch < 1) {
    throw Error(ErrorKind::invalid, "A loader needs at least 1 thread and a prefetch of 1.");
  }
  plan_options_.num_records = static_cast<std::int64_t>(reader_->record_count());
  plan_options_.start = 0;
  whole_ = std::make_shared<const Plan>(plan_options_);
}

Loader::~Loader() {
  abandon_workers_of_parent();
}

void Loader::abandon_workers_of_parent() noexcept {
  // Joining threads that this process does not have would wait for ever.
  if (workers_ != nullptr && !workers_->belong_to_this_process()) (void)workers_.release();
}

std::int64_t Loader::position() const noexcept {
  return plan_here().position_after(step_ - 1);
}

std::int64_t Loader::steps_left() const noexcept {
  return plan_here().steps() - step_;
}

void Loader::seek(std::uint64_t epoch, std::int64_t position) {
  if (epoch == epoch_ && position == this->position()) return;
  PlanOptions rest = plan_options_;
  rest.start = position;
  auto partial = std::make_shared<const Plan>(rest);  // throws before anything has changed
  abandon_workers_of_parent();
  workers_ = nullptr;
  partial_ = std::move(partial);
  first_epoch_ = position != 0;
  epoch_ = epoch;
  step_ = 0;
}

Loader::Wait Loader::wait_next(double seconds, LoadedBatch* batch) {
  if (steps_left() <= 0) return Wait::epoch_ended;
  abandon_workers_of_parent();
  if (workers_ == nullptr) {
    workers_ = std::make_unique<Workers>(
        reader_, features_, LoaderStart{epoch_, step_, first_epoch_ ? partial_ : whole_, whole_},
        options_.threads, options_.prefetch, counters_);
  }
  try {
    if (!workers_->take(seconds, batch)) return Wait::timed_out;
  } catch (...) {
    // Asked again, new workers try the same batch again.
    workers_ = nullptr;
    throw;
  }
  ++step_;
  return Wait::ready;
}

void Loader::next_epoch() {
  const bool at_its_end = steps_left() <= 0;
  if (!at_its_end) {
    seek(epoch_ + 1, 0);
    return;
  }
  ++epoch_;
  step_ = 0;
  first_epoch_ = false;
}

LoaderStats Loader::stats() const noexcept {
  constexpr double kNanosecond = 1e-9;
  LoaderStats stats;
  stats.records = counters_->records;
  stats.bytes = counters_->bytes;
  stats.batches = counters_->batches;
  stats.consumer_waited_s = kNanosecond * static_cast<double>(counters_->consumer_waited_ns);
  stats.workers_waited_s = kNanosecond * static_cast<double>(counters_->workers_waited_ns);
  stats.read_ahead_bytes = counters_->read_ahead_bytes;
  return stats;
}

}  // namespace tfrfast
