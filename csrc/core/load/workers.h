// The threads of a loader, and the ring of batches that the threads fill.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/load/batch_work.h"
#include "core/load/loader.h"
#include "core/order/plan_run.h"
#include "core/read/record_source.h"

namespace tfrfast {

// Tickets number a run's batches, without end. The batch of ticket t waits in outcomes_[t %
// prefetch], and a worker may claim ticket t once ticket t - prefetch has been taken. Safe from
// many threads, except that only one thread may call stop(). A forked child has none of the
// threads, and must not touch the object, not even destroy it.
class Workers {
 public:
  // Throws Error io if the system starts no thread.
  Workers(std::shared_ptr<const RecordSource> source, std::shared_ptr<const FeatureSchema> features,
          PlanRun run, const LoaderOptions& options, bool goes_on,
          std::shared_ptr<LoaderCounters> counters);
  ~Workers();  // calls stop()

  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // The outcome of take() for the next ticket.
  enum class Taken : std::uint8_t {
    batch,  // the ticket's batch was taken
    none,   // the ticket's batch is not ready yet
    error,  // the ticket's worker threw; the ticket stays the next one
  };
  struct Taking {
    Taken taken = Taken::none;
    std::uint64_t ticket = 0;
    LoadedBatch batch;
    std::exception_ptr error;
  };
  // Does not wait.
  Taking take();

  // Waits until the batch of `ticket` is ready or taken, its worker has thrown, or stop() is
  // called. False after `seconds`.
  bool wait_for(std::uint64_t ticket, double seconds);

  // Lets the workers go on into further epochs, even if they had stopped at the end of the first.
  void go_on() noexcept;

  // Ends and joins the threads, within about one piece of a read. Threads in wait_for() return at
  // once.
  void stop() noexcept;

 private:
  class EndIfStopping;
  class Planner;
  struct Outcome {
    LoadedBatch batch;
    std::exception_ptr error;
    bool done = false;
  };

  void work(std::uint32_t worker);
  void look_at_remote_ahead();
  void announce_after(std::uint64_t number, Planner& ahead);
  void announce_together(std::uint64_t first, std::uint64_t count, Planner& ahead);
  // The first ticket that may not be claimed.
  std::uint64_t limit() const noexcept {
    return goes_on_.load(std::memory_order_relaxed) ? ~std::uint64_t{0} : run_.steps_left();
  }

  const std::shared_ptr<const RecordSource> source_;
  const std::shared_ptr<const FeatureSchema> features_;
  const PlanRun run_;
  const bool tracks_presence_;
  const std::shared_ptr<LoaderCounters> counters_;

  std::mutex mutex_;
  std::condition_variable ready_;  // signals consumers that the next ticket's batch is ready
  std::condition_variable space_;  // signals workers that a slot is free
  unsigned consumers_waiting_ = 0;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> goes_on_;  // past the end of the run's first epoch
  std::uint64_t claimed_ = 0;
  std::uint64_t taken_ = 0;
  std::vector<Outcome> outcomes_;
  std::mutex announcing_;  // locked before mutex_ while batches of a remote storage are announced
  AnnouncedAhead ahead_;   // of a remote storage, by ticket; guarded by announcing_
  ReadAhead read_ahead_;
  std::uint64_t announced_ = 0;           // the first ticket not announced yet
  std::uint64_t announced_ahead_ = 0;     // announce batches this far ahead
  std::uint64_t announced_together_ = 1;  // announce this many batches at once
  std::vector<std::thread> threads_;
};

}  // namespace tfrfast
