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

#include "core/base/process.h"
#include "core/load/batch_work.h"
#include "core/load/read_ahead.h"
#include "core/order/plan.h"
#include "core/read/reader.h"

namespace tfrfast {

// What a loader counts, workers after workers. Any thread reads it at any time.
struct LoaderCounters {
  std::atomic<std::uint64_t> records{0};
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint64_t> batches{0};
  std::atomic<std::uint64_t> consumer_waited_ns{0};
  std::atomic<std::uint64_t> workers_waited_ns{0};
  std::atomic<std::uint64_t> read_ahead_bytes{0};
};

// Where an endless sequence of batches begins: at `step` of `first`, which is the rest of `epoch`;
// then come whole epochs.
struct LoaderStart {
  std::uint64_t epoch = 0;
  std::int64_t step = 0;
  std::shared_ptr<const Plan> first;
  std::shared_ptr<const Plan> whole;
};

// Batches are numbered by tickets, without end. Ticket t waits in slot t % prefetch; a worker may
// claim ticket t once ticket t - prefetch has been taken. Destroying them stops and joins the
// threads: never do that in a forked child, which does not have them.
class Workers {
 public:
  Workers(std::shared_ptr<const Reader> reader, std::shared_ptr<const FeaturePlan> features,
          LoaderStart start, unsigned threads, unsigned prefetch,
          std::shared_ptr<LoaderCounters> counters);
  ~Workers();  // waits for one piece of a read at most

  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  bool belong_to_this_process() const { return home_.is_this_one(); }

  // The batch of the next ticket; false if it is not there in time. Rethrows what its worker threw,
  // every time it is asked. One thread asks.
  bool take(double seconds, LoadedBatch* batch);

 private:
  struct Ticket;
  class RowNumbers;
  struct Slot {
    LoadedBatch batch;
    std::exception_ptr error;
    bool done = false;
  };

  Ticket ticket(std::uint64_t number) const;
  void work();
  void announce_behind(std::uint64_t number, RowNumbers& ahead);

  const HomeProcess home_;
  const std::shared_ptr<const Reader> reader_;
  const std::shared_ptr<const FeaturePlan> features_;
  const LoaderStart start_;
  const std::shared_ptr<LoaderCounters> counters_;

  std::mutex mutex_;
  std::condition_variable ready_;  // the consumer waits for its batch
  std::condition_variable room_;   // workers wait for a slot
  std::atomic<bool> stopping_{false};
  std::uint64_t claimed_ = 0;
  std::uint64_t taken_ = 0;
  std::vector<Slot> slots_;
  ReadAhead read_ahead_;
  std::vector<std::thread> threads_;
};

}  // namespace tfrfast
