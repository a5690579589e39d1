// One epoch after another, in order, read ahead by worker threads.
#pragma once

#include <cstdint>
#include <memory>

#include "core/load/batch_work.h"
#include "core/order/plan.h"
#include "core/read/reader.h"

namespace tfrfast {

class Workers;
struct LoaderCounters;

struct LoaderOptions {
  unsigned threads = 1;   // workers; started by the first wait_next()
  unsigned prefetch = 2;  // batches read or being read ahead of the consumer, at least 1
};

// Sums since the loader was made. Who waits for whom says where the bottleneck is.
struct LoaderStats {
  std::uint64_t records = 0;  // delivered, without padding
  std::uint64_t bytes = 0;    // of their payloads
  std::uint64_t batches = 0;
  double consumer_waited_s = 0;  // for a batch that was not ready: the input is the bottleneck
  double workers_waited_s = 0;   // for the consumer to take one, summed over workers: it is not
  std::uint64_t read_ahead_bytes = 0;  // that the kernel was asked for early, the data being cold
};

// The batches of one epoch after another, each exactly what Plan says, whatever the threads do.
//
// One thread consumes; stats() may be called from any. Workers hold only core objects, so nothing
// here needs Python. A batch that cannot be read is an Error at its place in the order; nothing of
// it counts as consumed, and asking again tries it again. A forked child has no workers: it starts
// its own where the parent stood, and never touches the parent's.
class Loader {
 public:
  // `plan.start` is not used: seek() says where to begin. Without `features`, which may be null,
  // batches are records.
  Loader(std::shared_ptr<const Reader> reader, PlanOptions plan, LoaderOptions options,
         std::shared_ptr<const FeaturePlan> features = nullptr);
  ~Loader();  // stops and joins the workers: waits for one piece of a read at most

  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next batch will be the first one after `position` positions of `epoch`. What has been read
  // ahead is kept if that is where the loader stands. Throws Error invalid for a position beyond
  // the epoch.
  void seek(std::uint64_t epoch, std::int64_t position);

  std::uint64_t epoch() const noexcept { return epoch_; }
  std::int64_t step() const noexcept { return step_; }  // batches of the epoch since its start here
  std::int64_t position() const noexcept;  // positions of the epoch consumed, by all ranks together
  std::int64_t steps_left() const noexcept;  // of this epoch, for this rank
  const Plan& whole_epoch() const noexcept { return *whole_; }

  enum class Wait : std::uint8_t { ready, timed_out, epoch_ended };
  // Waits at most `seconds` for the next batch. Under `ready`, `batch` holds it and the loader
  // stands behind it. Under `epoch_ended` nothing is left of this epoch: next_epoch() goes on.
  Wait wait_next(double seconds, LoadedBatch* batch);
  void next_epoch();

  LoaderStats stats() const noexcept;
  const LoaderOptions& options() const noexcept { return options_; }

 private:
  void abandon_workers_of_parent() noexcept;
  const Plan& plan_here() const noexcept { return first_epoch_ ? *partial_ : *whole_; }

  std::shared_ptr<const Reader> reader_;
  std::shared_ptr<const FeaturePlan> features_;
  PlanOptions plan_options_;
  LoaderOptions options_;
  std::shared_ptr<const Plan> whole_;    // of an epoch from its beginning
  std::shared_ptr<const Plan> partial_;  // of the epoch that seek() entered in the middle
  bool first_epoch_ = false;             // whether the loader still is in that one
  std::uint64_t epoch_ = 0;
  std::int64_t step_ = 0;
  std::shared_ptr<LoaderCounters> counters_;
  std::unique_ptr<Workers> workers_;
};

}  // namespace tfrfast
