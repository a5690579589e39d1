// The threads of a loader, and the ring of batches that they fill.
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

// What a loader counts. It outlives the loader's Workers, which are replaced after a seek or an
// error. Safe from many threads.
struct LoaderCounters {
  std::atomic<std::uint64_t> records{0};
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint64_t> batches{0};
  std::atomic<std::uint64_t> consumer_waited_ns{0};
  std::atomic<std::uint64_t> workers_waited_ns{0};
  std::atomic<std::uint64_t> read_ahead_bytes{0};
};

// A run's batches are numbered by tickets, without end. The batch of ticket t waits in
// outcomes_[t % prefetch], and a worker may claim ticket t once ticket t - prefetch has been taken.
// Safe from many threads, except that only one may call stop(). A forked child has none of these
// threads. It must not touch the object, and not even destroy it.
class Workers {
 public:
  // Throws Error io if the system has no threads to give.
  Workers(std::shared_ptr<const RecordSource> source, std::shared_ptr<const FeatureSchema> features,
          PlanRun run, const LoaderOptions& options, bool goes_on,
          std::shared_ptr<LoaderCounters> counters);
  ~Workers();  // stops them

  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // What take() found out about the next ticket.
  enum class Taken : std::uint8_t {
    batch,  // its batch was taken
    none,   // its batch is not ready yet
    error,  // its worker threw; the ticket stays the next one
  };
  struct Taking {
    Taken taken = Taken::none;
    std::uint64_t ticket = 0;
    LoadedBatch batch;
    std::exception_ptr error;
  };
  // Does not wait.
  Taking take();

  // Waits until the batch of `ticket` is ready or was taken, its worker threw, or stop() was
  // called. False if none of that happens within `seconds`.
  bool wait_for(std::uint64_t ticket, double seconds);

  // Further epochs will be taken, too. Workers that have stopped at the end of the first go on.
  void go_on() noexcept;

  // Ends and joins the threads, which takes at most as long as one piece of a read. Threads in
  // wait_for() return at once.
  void stop() noexcept;

 private:
  class EndIfStopping;
  class RowNumbers;
  struct Outcome {
    LoadedBatch batch;
    std::exception_ptr error;
    bool done = false;
  };

  void work();
  void look_far_ahead();
  void announce_after(std::uint64_t number, RowNumbers& ahead);
  void announce_together(std::uint64_t first, std::uint64_t count, RowNumbers& ahead);
  // The first ticket that nobody may claim.
  std::uint64_t limit() const noexcept {
    return goes_on_.load(std::memory_order_relaxed) ? ~std::uint64_t{0} : run_.steps_left();
  }

  const std::shared_ptr<const RecordSource> source_;
  const std::shared_ptr<const FeatureSchema> features_;
  const PlanRun run_;
  const bool tracks_presence_;
  const std::shared_ptr<LoaderCounters> counters_;

  std::mutex mutex_;
  std::condition_variable ready_;  // consumers wait for the next ticket's batch
  std::condition_variable room_;   // workers wait for room
  unsigned consumers_waiting_ = 0;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> goes_on_;  // past the end of the epoch that the run begins in
  std::uint64_t claimed_ = 0;
  std::uint64_t taken_ = 0;
  std::vector<Outcome> outcomes_;
  std::mutex announcing_;  // locked before mutex_, while batches of a far storage are announced
  AnnouncedAhead ahead_;   // of a far storage, by tickets; guarded by announcing_
  ReadAhead read_ahead_;
  std::uint64_t announced_ = 0;           // the first ticket that was not announced
  std::uint64_t announced_ahead_ = 0;     // how many batches before they are needed
  std::uint64_t announced_together_ = 1;  // and how many at once
  std::vector<std::thread> threads_;
};

}  // namespace tfrfast
