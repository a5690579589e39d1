#include "core/load/workers.h"

#include <pthread.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

namespace tfrfast {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::memory_order kRelaxed = std::memory_order_relaxed;

std::uint64_t nanoseconds_since(Clock::time_point begin) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count());
}

}  // namespace

struct Workers::Ticket {
  std::uint64_t epoch = 0;
  std::int64_t step = 0;
  const Plan* plan = nullptr;
};

// One batch's record numbers, and room for the next one's: each worker keeps its own.
class Workers::RowNumbers {
 public:
  void fill(const Ticket& ticket) {
    if (!epoch_ || plan_ != ticket.plan || epoch_number_ != ticket.epoch) {
      plan_ = ticket.plan;
      epoch_number_ = ticket.epoch;
      epoch_.emplace(*plan_, epoch_number_);
    }
    count_ = plan_->row_count(ticket.step);
    const std::size_t bytes = count_ * (sizeof(std::int64_t) + sizeof(bool));
    if (memory_.capacity() < bytes) memory_ = PooledBuffer(bytes);
    plan_->rows(*epoch_, ticket.step, records(), valid());
  }
  std::span<const std::int64_t> numbers() const { return {records(), count_}; }
  bool* valid() const { return reinterpret_cast<bool*>(records() + count_); }

 private:
  std::int64_t* records() const { return memory_.as<std::int64_t>(); }

  const Plan* plan_ = nullptr;
  std::uint64_t epoch_number_ = 0;
  std::optional<Plan::Epoch> epoch_;
  std::size_t count_ = 0;
  PooledBuffer memory_;
};

Workers::Workers(std::shared_ptr<const Reader> reader, std::shared_ptr<const FeaturePlan> features,
                 LoaderStart start, unsigned threads, unsigned prefetch,
                 std::shared_ptr<LoaderCounters> counters)
    : reader_(std::move(reader)),
      features_(std::move(features)),
      start_(std::move(start)),
      counters_(std::move(counters)),
      slots_(prefetch),
      read_ahead_(*reader_, counters_->read_ahead_bytes) {
  // Signals belong to the threads of whoever uses us; SIGBUS is ours.
  sigset_t all, before;
  ::sigfillset(&all);
  ::sigdelset(&all, SIGBUS);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    while (threads_.size() < threads) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    // The system has no more threads to give. One is enough; none is an error.
    if (threads_.empty()) {
      ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
      throw;
    }
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Workers::~Workers() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  room_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool Workers::take(double seconds, LoadedBatch* batch) {
  std::unique_lock lock(mutex_);
  Slot& slot = slots_[taken_ % slots_.size()];
  const auto done = [&slot] { return slot.done; };
  if (!slot.done) {
    const Clock::time_point began = Clock::now();
    const bool in_time = ready_.wait_for(lock, std::chrono::duration<double>(seconds), done);
    counters_->consumer_waited_ns.fetch_add(nanoseconds_since(began), kRelaxed);
    if (!in_time) return false;
  }
  if (slot.error) std::rethrow_exception(slot.error);
  *batch = std::move(slot.batch);
  slot = Slot();
  ++taken_;
  lock.unlock();
  room_.notify_one();
  counters_->batches.fetch_add(1, kRelaxed);
  counters_->bytes.fetch_add(batch->payload_bytes, kRelaxed);
  counters_->records.fetch_add(batch->real_rows, kRelaxed);
  return true;
}

Workers::Ticket Workers::ticket(std::uint64_t number) const {
  const auto left = static_cast<std::uint64_t>(start_.first->steps() - start_.step);
  if (number < left) {
    return {start_.epoch, start_.step + static_cast<std::int64_t>(number), start_.first.get()};
  }
  const auto steps = static_cast<std::uint64_t>(start_.whole->steps());
  number -= left;
  return {start_.epoch + 1 + number / steps, static_cast<std::int64_t>(number % steps),
          start_.whole.get()};
}

void Workers::work() {
  RowNumbers rows;
  RowNumbers ahead;
  std::optional<BatchWork> batch_work;
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto may_claim = [this] { return stopping_ || claimed_ < taken_ + slots_.size(); };
    if (!may_claim()) {
      const Clock::time_point began = Clock::now();
      room_.wait(lock, may_claim);
      counters_->workers_waited_ns.fetch_add(nanoseconds_since(began), kRelaxed);
    }
    if (stopping_) return;
    const std::uint64_t number = claimed_++;
    lock.unlock();
    Slot result;
    try {
      if (!batch_work) batch_work.emplace(reader_, features_);
      announce_behind(number, ahead);
      rows.fill(ticket(number));
      result.batch = batch_work->load(rows.numbers(), rows.valid(), stopping_);
    } catch (const ReadCancelled&) {
      return;
    } catch (...) {
      result.error = std::current_exception();
    }
    result.done = true;
    lock.lock();
    slots_[number % slots_.size()] = std::move(result);
    if (number == taken_) ready_.notify_one();
  }
}

// The first ticket announces all that the ring has room for; each later one, one more.
void Workers::announce_behind(std::uint64_t number, RowNumbers& ahead) {
  const std::uint64_t depth = slots_.size();
  for (std::uint64_t next = number == 0 ? 1 : number + depth; next <= number + depth; ++next) {
    const Ticket later = ticket(next);
    if (!read_ahead_.is_due(later.plan->row_count(later.step))) continue;
    ahead.fill(later);
    read_ahead_.announce(ahead.numbers());
  }
}

}  // namespace tfrfast
