// One epoch after another, in order, read ahead by worker threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/base/process.h"
#include "core/load/batch_work.h"
#include "core/order/plan_run.h"
#include "core/read/reader.h"

namespace tfrfast {

class Workers;
struct LoaderCounters;

struct LoaderOptions {
  unsigned threads = 1;   // workers; started when the first batch is waited for
  unsigned prefetch = 2;  // batches read or being read ahead of the consumers, at least 1
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

// One pass: an epoch, or the rest of one. Made by Loader::begin() and handed to its other
// functions; many threads may use one.
class LoaderPass {
 private:
  friend class Loader;
  enum class State : std::uint8_t { running, ended, replaced, moved };
  State state_ = State::running;
};

// The batches of one epoch after another, each exactly what Plan says, whatever the threads do.
//
// Safe from many threads, which share what is left of a pass: each batch goes to one of them, once.
// Workers hold only core objects, so nothing here needs Python. A batch that cannot be read is an
// Error at its place in the order; nothing of it counts as consumed, and asking again tries it
// again. A forked child has no workers: it starts its own where the parent stood, and never touches
// the parent's.
class Loader {
 public:
  // `plan.start` is not used: seek() says where to begin. Without `features`, which may be null,
  // batches are records. Throws Error(invalid) for the plan of another number of records.
  Loader(std::shared_ptr<const Reader> reader, PlanOptions plan, LoaderOptions options,
         std::shared_ptr<const FeaturePlan> features = nullptr);
  ~Loader();  // closes it

  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // All of the following throw Error closed once close() was called, also while they wait.

  // Begins a pass over the next epoch, or over the rest of one: the first time, after seek(), and
  // the first time in a forked child, of the epoch that the loader stands in. A pass that was still
  // running is replaced.
  std::shared_ptr<LoaderPass> begin();

  enum class Wait : std::uint8_t {
    ready,       // the next batch; the loader stands after it
    timed_out,   // it is not there yet
    pass_ended,  // all batches of the pass have been delivered
    replaced,    // another pass has begun since
    moved,       // seek() was called since
  };
  // Waits at most `seconds` for the next batch of `pass`.
  Wait wait_next(LoaderPass& pass, double seconds, LoadedBatch* batch);
  // The same if it takes no time: it neither waits nor starts nor stops threads.
  Wait poll_next(LoaderPass& pass, LoadedBatch* batch);

  // Has the next pass begin after `position` positions of `epoch`. What has been read ahead is kept
  // if that is where the loader stands. Throws Error invalid for a position beyond the epoch; then
  // nothing has changed.
  void seek(std::uint64_t epoch, std::int64_t position);

  struct Place {
    std::uint64_t epoch = 0;    // that is being delivered, or will be by the next pass
    std::int64_t step = 0;      // its batches that were delivered, since it was entered
    std::int64_t position = 0;  // its positions that were delivered, by all ranks together
  };
  Place place() const;

  LoaderStats stats() const;

  // Stops the workers and lets go of all but the settings. Once is enough; more does no harm.
  void close() noexcept;

  const Plan& whole_epoch() const noexcept { return *whole_; }
  const LoaderOptions& options() const noexcept { return options_; }

 private:
  // These are called under the lock.
  bool settle_in_this_process() noexcept;
  void check_open() const;
  void end_pass(LoaderPass::State state) noexcept;
  [[nodiscard]] std::shared_ptr<Workers> enter_next_epoch() noexcept;
  std::optional<Wait> no_more(const LoaderPass& pass);
  PlanRun run_from_here() const;
  const Plan& plan_here() const noexcept { return in_partial_ ? *partial_ : *whole_; }
  std::int64_t position() const noexcept { return plan_here().position_after(step_ - 1); }
  std::int64_t steps_left() const noexcept { return plan_here().steps() - step_; }

  void start_workers(const PlanRun& run);

  const LoaderOptions options_;
  const std::shared_ptr<LoaderCounters> counters_;
  PlanOptions plan_options_;           // never changed once it is built
  std::shared_ptr<const Plan> whole_;  // of an epoch from its beginning; neither

  // The lock guards the rest.
  std::shared_ptr<const Reader> reader_;  // null once it is closed
  std::shared_ptr<const FeaturePlan> features_;
  std::shared_ptr<const Plan> partial_;  // of the epoch that seek() entered in the middle
  bool in_partial_ = false;              // whether the loader still is in that one
  std::uint64_t epoch_ = 0;
  std::int64_t step_ = 0;
  bool at_beginning_ = true;          // of what the next pass is to deliver
  std::shared_ptr<LoaderPass> pass_;  // that is running
  std::shared_ptr<Workers> workers_;  // of process home_
  HomeProcess home_;
};

}  // namespace tfrfast
