#include "core/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "core/base/platform.h"
#include "core/base/process.h"
#include "core/base/thread.h"
#include "core/base/waiting.h"

#if defined(TFRFAST_LINUX)
#include <sched.h>
#endif

namespace tfrfast {
namespace {

struct Abandoned {};

// One parallel_for(): threads claim numbers from `next`, and the last to finish wakes the caller.
struct Job {
  Job(std::size_t how_many, const std::function<void(std::size_t)>& what)
      : count(how_many), work(what) {}

  const std::size_t count;
  const std::function<void(std::size_t)>& work;  // not touched once `finished == count`
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> finished{0};
  std::atomic<std::size_t> first_failed{SIZE_MAX};  // lower numbers are still worked on
  std::atomic<bool> caller_failed{false};           // no number is worked on

  std::mutex mutex;
  std::condition_variable all_finished;
  std::exception_ptr error;

  void run_until_claimed() {
    for (;;) {
      const std::size_t number = next.fetch_add(1, std::memory_order_relaxed);
      if (number >= count) return;
      if (number < first_failed.load(std::memory_order_relaxed)) {
        try {
          const EndIfFailed end_if_failed(*this, number);
          work(number);
        } catch (...) {
          fail(number);
        }
      }
      if (finished.fetch_add(1, std::memory_order_acq_rel) + 1 == count) {
        std::lock_guard lock(mutex);
        all_finished.notify_all();
      }
    }
  }

  // Ends the waits of work that no longer matters. On the caller's thread, also calls the caller's
  // check.
  class EndIfFailed final : public WaitCheck {
   public:
    EndIfFailed(const Job& job, std::size_t number) noexcept : job_(job), number_(number) {}
    void check() override {
      if (job_.caller_failed.load(std::memory_order_relaxed) ||
          job_.first_failed.load(std::memory_order_relaxed) < number_) {
        throw Abandoned();
      }
      if (outer() != nullptr) outer()->check();
    }

   private:
    const Job& job_;
    const std::size_t number_;
  };

  void fail(std::size_t number) {
    std::lock_guard lock(mutex);
    if (number >= first_failed) return;
    error = std::current_exception();
    first_failed = number;
  }

  void wait(const std::function<void()>& while_waiting) {
    std::unique_lock lock(mutex);
    const auto done = [this] { return finished.load(std::memory_order_acquire) == count; };
    WaitCheck* const check = wait_check();
    while (!done()) {
      if (!while_waiting && check == nullptr) {
        all_finished.wait(lock, done);
      } else if (!all_finished.wait_for(lock, std::chrono::milliseconds(100), done)) {
        lock.unlock();
        try {
          if (check != nullptr) check->check();
          if (while_waiting) while_waiting();
        } catch (...) {
          fail(0);  // the caller's exception precedes the exceptions of all work
          caller_failed = true;
        }
        lock.lock();
      }
    }
  }
};

class Team {
 public:
  static Team& instance() { return one_per_process<Team>(); }

  void offer(const std::shared_ptr<Job>& job, unsigned helpers) {
    {
      std::lock_guard lock(mutex_);
      for (unsigned i = 0; i < helpers; ++i) jobs_.push_back(job);
      const std::size_t needed = std::min<std::size_t>(jobs_.size(), kMaxThreads);
      while (idle_ < needed && threads_ < kMaxThreads) {
        if (!start_helper()) break;
      }
    }
    if (helpers == 1) {
      wake_.notify_one();
    } else {
      wake_.notify_all();
    }
  }

 private:
  static constexpr unsigned kMaxThreads = 256;

  // False if the system starts no more threads. The caller then does more of the work itself.
  bool start_helper() {
    try {
      start_thread([this] { serve(); }).detach();
    } catch (const std::exception&) {
      return false;
    }
    ++threads_, ++idle_;
    return true;
  }

  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return !jobs_.empty(); });
      std::shared_ptr<Job> job = std::move(jobs_.front());
      jobs_.pop_front();
      --idle_;
      lock.unlock();
      job->run_until_claimed();
      job = nullptr;  // the job's members are not destroyed under the lock
      lock.lock();
      ++idle_;
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<Job>> jobs_;
  unsigned threads_ = 0;
  unsigned idle_ = 0;
};

#if defined(TFRFAST_LINUX)
// Processors' worth of time that cgroup v2 or v1 grants, or 0 for no limit.
double cgroup_quota() {
  const auto ratio = [](const std::string& quota, const std::string& period) {
    try {
      const double limit = std::stod(quota) / std::stod(period);
      return limit > 0 ? limit : 0.0;
    } catch (const std::exception&) {
      return 0.0;  // the quota is "max", or the file does not exist
    }
  };
  std::string quota, period;
  std::ifstream("/sys/fs/cgroup/cpu.max") >> quota >> period;
  if (!quota.empty()) return ratio(quota, period);
  std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") >> quota;
  std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_period_us") >> period;
  return ratio(quota, period);
}
#endif

}  // namespace

unsigned usable_processors() {
  unsigned processors = std::max(1u, std::thread::hardware_concurrency());
#if defined(TFRFAST_LINUX)
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) {
    processors = std::max(1u, static_cast<unsigned>(CPU_COUNT(&set)));
  }
  if (const double quota = cgroup_quota(); quota > 0 && quota < processors) {
    processors = static_cast<unsigned>(quota + 0.999);
  }
#endif
  return processors;
}

void parallel_for(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work,
                  const std::function<void()>& while_waiting) {
  if (count == 0) return;
  if (count == 1 && !while_waiting) return work(0);
  const auto job = std::make_shared<Job>(count, work);
  const auto helpers =
      static_cast<unsigned>(std::min<std::size_t>(count - 1, std::max(threads, 1u) - 1));
  if (helpers > 0) Team::instance().offer(job, helpers);
  job->run_until_claimed();
  job->wait(while_waiting);
  // Move the error out of the job: a Python exception must be destroyed on the caller's thread.
  if (auto error = std::exchange(job->error, nullptr)) std::rethrow_exception(std::move(error));
}

}  // namespace tfrfast
