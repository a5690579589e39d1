// The batches of one epoch after another, read ahead by worker threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/base/process.h"
#include "core/load/batch_work.h"
#include "core/order/plan_run.h"
#include "core/read/record_source.h"

namespace tfrfast {

class Workers;
struct LoaderCounters;

struct LoaderOptions {
  unsigned threads = 1;          // workers; they start when a consumer first waits for a batch
  unsigned prefetch = 2;         // batches that are read ahead of the consumers, at least 1
  bool tracks_presence = false;  // columns say which rows have the feature
  bool one_pass = false;         // nothing is read ahead past the end of the first pass
};

// Sums since the loader was made. They show whether the workers or their consumers are slower.
struct LoaderStats {
  std::uint64_t records = 0;  // delivered, without padding
  std::uint64_t bytes = 0;    // of the delivered payloads
  std::uint64_t batches = 0;  // delivered
  // How long consumers waited for batches. If this is large, the workers are the bottleneck.
  double consumer_waited_s = 0;
  // How long workers, taken together, waited for room. If this is large, the consumers are.
  double workers_waited_s = 0;
  std::uint64_t read_ahead_bytes = 0;  // announced because the data were cold
};

// One pass over an epoch, or over the rest of one. Loader::begin() makes it for the other
// functions. Many threads may use one.
class LoaderPass {
 private:
  friend class Loader;
  enum class State : std::uint8_t { running, ended, replaced, moved };
  State state_ = State::running;
};

// Delivers the batches of one epoch after another, exactly as Plan deals them, however many threads
// there are.
//
// Safe from many threads, which share a pass: each batch goes to one of them, once. Workers hold
// only core objects, so they never need Python. A batch that cannot be read is an Error at its
// place in the order. It does not count as consumed, and asking again tries it again. A forked
// child has no workers. It starts its own where the parent was, and never touches the parent's.
class Loader {
 public:
  // `plan.start` is not used: seek() says where to begin. If `features` is null, batches are
  // records. Throws Error(invalid) if the plan is for another number of records.
  Loader(std::shared_ptr<const RecordSource> source, PlanOptions plan, LoaderOptions options,
         std::shared_ptr<const FeatureSchema> features = nullptr);
  ~Loader();  // closes it

  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // After close(), all of the following throw Error closed, also if they are waiting.

  // Begins a pass over the next epoch. The first time, after seek(), and the first time in a forked
  // child, the pass is over the rest of the current epoch. It replaces a pass that is still
  // running.
  std::shared_ptr<LoaderPass> begin();

  enum class Wait : std::uint8_t {
    ready,       // here is the next batch
    timed_out,   // the next batch is not ready yet
    pass_ended,  // all batches of the pass have been delivered
    replaced,    // another pass has begun since
    moved,       // seek() was called since
  };
  // Waits at most `seconds` for the next batch of `pass`.
  Wait wait_next(LoaderPass& pass, double seconds, LoadedBatch* batch);
  // The same without waiting. Neither starts nor stops threads.
  Wait poll_next(LoaderPass& pass, LoadedBatch* batch);

  // The next pass will begin after `position` positions of `epoch`. If the loader is there already,
  // what has been read ahead is kept. Throws Error invalid for a position beyond the epoch, and
  // changes nothing then.
  void seek(std::uint64_t epoch, std::int64_t position);

  struct Place {
    std::uint64_t epoch = 0;    // the epoch that is being delivered, or will be by the next pass
    std::int64_t step = 0;      // how many of its batches were delivered since it was entered
    std::int64_t position = 0;  // how many of its positions were delivered, by all ranks together
  };
  Place place() const;

  LoaderStats stats() const;

  // Stops the workers and frees everything but the settings. May be called again.
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
  std::shared_ptr<const Plan> whole_;  // of an epoch from its beginning; never changed either

  // The lock guards the rest.
  std::shared_ptr<const RecordSource> source_;  // null once it is closed
  std::shared_ptr<const FeatureSchema> features_;
  std::shared_ptr<const Plan> partial_;  // of the epoch that seek() entered in the middle
  bool in_partial_ = false;              // whether the loader is still in that epoch
  std::uint64_t epoch_ = 0;
  std::int64_t step_ = 0;
  bool at_beginning_ = true;  // whether the next pass begins here, not at the next epoch
  bool has_begun_ = false;    // a pass
  // Whether the next epoch is read ahead. From a network that is only done when it is known to
  // come.
  bool goes_on_;
  std::shared_ptr<LoaderPass> pass_;  // the running one
  std::shared_ptr<Workers> workers_;  // of process home_
  HomeProcess home_;
};

}  // namespace tfrfast
