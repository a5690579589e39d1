// Delivers the batches of one epoch after another, read ahead by worker threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "core/base/process.h"
#include "core/load/batch_work.h"
#include "core/order/plan_run.h"
#include "core/read/record_source.h"

namespace tfrfast {

class Workers;

struct LoaderOptions {
  unsigned threads = 1;          // workers, started when a consumer first waits for a batch
  unsigned prefetch = 2;         // batches to read ahead of the consumers, at least 1
  bool tracks_presence = false;  // columns say which rows have the feature
  bool one_pass = false;         // do not read ahead past the end of the first pass
};

// Sums since the loader was made. The sums show whether the workers or the consumers are slower.
// Outlives the loader's Workers, which a seek or an error replaces. Safe from many threads.
struct LoaderCounters {
  std::atomic<std::uint64_t> records{0};  // delivered records, without padding
  std::atomic<std::uint64_t> bytes{0};    // bytes of the delivered payloads
  std::atomic<std::uint64_t> batches{0};  // delivered batches
  // Time that consumers waited for batches. Large if the workers are the bottleneck.
  std::atomic<std::uint64_t> consumer_waited_ns{0};
  // Time that all workers together waited for space. Large if the consumers are the bottleneck.
  std::atomic<std::uint64_t> workers_waited_ns{0};
  std::atomic<std::uint64_t> read_ahead_bytes{0};  // announced because the data were cold
  std::atomic<bool> is_timed{false};               // batches say when they were made
};

// A pass over an epoch, or over the rest of an epoch. Loader::begin() makes the pass for the other
// functions. Many threads may share a pass.
class LoaderPass {
 private:
  friend class Loader;
  enum class State : std::uint8_t { running, ended, replaced, moved };
  State state_ = State::running;
};

// Delivers the batches of one epoch after another, exactly as Plan deals them, independent of the
// number of threads.
//
// Safe from many threads, which may share a pass: each batch goes to one thread, once. Workers hold
// only core objects, so they never need Python. A batch that cannot be read is an Error at its
// place in the order. Such a batch does not count as consumed, and the next call tries the batch
// again. A forked child has no workers. It starts workers of its own at the parent's place, and
// never touches the parent's workers.
class Loader {
 public:
  // Ignores `plan.start`; seek() sets the place. If `features` is null, batches hold records.
  // Throws Error(invalid) if the plan is for another number of records. With `counters` of another
  // loader, both add to the same sums.
  Loader(std::shared_ptr<const RecordSource> source, PlanOptions plan, LoaderOptions options,
         std::shared_ptr<const FeatureSchema> features = nullptr,
         std::shared_ptr<LoaderCounters> counters = nullptr);
  ~Loader();  // closes the loader

  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // After close(), every function below throws Error closed, in waiting threads too.

  // Begins a pass over the next epoch. The first pass, the first pass after seek(), and the first
  // pass in a forked child cover the rest of the current epoch. Replaces a pass that is still
  // running.
  std::shared_ptr<LoaderPass> begin();

  enum class Wait : std::uint8_t {
    ready,       // `*batch` is the next batch
    timed_out,   // the next batch is not ready yet
    pass_ended,  // all batches of the pass have been delivered
    replaced,    // another pass has begun
    moved,       // seek() was called
  };
  // Waits at most `seconds` for the next batch of `pass`.
  Wait wait_next(LoaderPass& pass, double seconds, LoadedBatch* batch);
  // Like wait_next(), without waiting. Neither starts nor stops threads.
  Wait poll_next(LoaderPass& pass, LoadedBatch* batch);

  // The next pass begins after `position` positions of `epoch`. If the loader is already there,
  // batches read ahead are kept. Throws Error invalid, and changes nothing, for a position beyond
  // the epoch.
  void seek(std::uint64_t epoch, std::int64_t position);

  struct Place {
    std::uint64_t epoch = 0;    // the epoch being delivered, or the next pass's epoch
    std::int64_t step = 0;      // batches of the epoch delivered since the loader entered the epoch
    std::int64_t position = 0;  // positions of the epoch delivered by all ranks together
  };
  Place place() const;

  const LoaderCounters& stats() const;

  // Stops the workers and frees everything but the settings. May be called repeatedly.
  void close() noexcept;

  const std::shared_ptr<LoaderCounters>& counters() const noexcept { return counters_; }

 private:
  // Call under the lock.
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
  PlanOptions plan_options_;           // constant after construction
  std::shared_ptr<const Plan> whole_;  // plan of a whole epoch; constant

  // The lock guards all members below.
  std::shared_ptr<const RecordSource> source_;  // null after close()
  std::shared_ptr<const FeatureSchema> features_;
  std::shared_ptr<const Plan> partial_;  // plan of the rest of an epoch that seek() entered
  bool in_partial_ = false;              // whether the loader is still in that rest
  std::uint64_t epoch_ = 0;
  std::int64_t step_ = 0;
  bool at_beginning_ = true;  // the next pass begins here rather than at the next epoch
  bool has_begun_ = false;    // a pass has begun before
  // Whether to read ahead into the next epoch. From a network, only if the next epoch is certain.
  bool goes_on_;
  std::shared_ptr<LoaderPass> pass_;  // the running pass
  std::shared_ptr<Workers> workers_;  // belongs to process home_
  HomeProcess home_;
};

}  // namespace tfrfast
