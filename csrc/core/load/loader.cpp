#include "core/load/loader.h"

#include <chrono>
#include <mutex>
#include <utility>

#include "core/base/error.h"
#include "core/base/fork.h"
#include "core/load/workers.h"

namespace tfrfast {
namespace {

using Clock = std::chrono::steady_clock;

// The lock of all loaders, held for a few assignments at a time. A single lock lets fork() wait for
// it: a child finds the lock free and every loader consistent. A thread that holds the lock must
// not start or stop threads, read, or release memory to the pool, whose lock fork() takes as well.
constinit std::mutex every_loader;
std::mutex& loaders_mutex() {
  return every_loader;
}
[[maybe_unused]] const int kGuarded = make_fork_wait_for<loaders_mutex>();

}  // namespace

Loader::Loader(std::shared_ptr<const RecordSource> source, PlanOptions plan, LoaderOptions options,
               std::shared_ptr<const FeatureSchema> features,
               std::shared_ptr<LoaderCounters> counters)
    : options_(options),
      counters_(counters == nullptr ? std::make_shared<LoaderCounters>() : std::move(counters)),
      plan_options_(std::move(plan)),
      source_(std::move(source)),
      features_(std::move(features)),
      // From a network, the next epoch is read ahead only in a second pass: unread bytes cost
      // money.
      goes_on_(!options_.one_pass && !source_->is_remote()) {
  if (options_.threads < 1 || options_.prefetch < 1) {
    throw Error(ErrorKind::invalid, "A loader needs at least 1 thread and a prefetch of 1.");
  }
  const auto records = static_cast<std::int64_t>(source_->record_count());
  if (plan_options_.order->records() != records) {
    throw Error(ErrorKind::invalid, "The plan is for " +
                                        std::to_string(plan_options_.order->records()) +
                                        " records, but there are " + std::to_string(records) + ".");
  }
  plan_options_.start = 0;
  whole_ = std::make_shared<const Plan>(plan_options_);
}

Loader::~Loader() {
  close();
}

// Returns true on the first call in a forked child.
bool Loader::settle_in_this_process() noexcept {
  if (home_.is_this_one()) return false;
  home_ = HomeProcess();
  // This process does not have the threads: joining would wait forever. Leak the object.
  if (workers_ != nullptr) (void)new std::shared_ptr<Workers>(std::move(workers_));
  return true;
}

void Loader::check_open() const {
  if (source_ == nullptr) throw Error(ErrorKind::closed, "This loader has been closed.");
}

void Loader::end_pass(LoaderPass::State state) noexcept {
  if (const auto pass = std::exchange(pass_, nullptr); pass != nullptr) pass->state_ = state;
}

// Returns workers that are no longer useful. The caller stops the workers without the lock.
std::shared_ptr<Workers> Loader::enter_next_epoch() noexcept {
  std::shared_ptr<Workers> elsewhere;
  // At the end of an epoch, the workers are in the next epoch already.
  if (steps_left() > 0) elsewhere = std::move(workers_);
  ++epoch_;
  step_ = 0;
  in_partial_ = false;
  return elsewhere;
}

PlanRun Loader::run_from_here() const {
  return {epoch_, step_, in_partial_ ? partial_ : whole_, whole_};
}

std::shared_ptr<LoaderPass> Loader::begin() {
  auto pass = std::make_shared<LoaderPass>();
  std::shared_ptr<Workers> elsewhere, workers;
  {
    const std::lock_guard lock(every_loader);
    check_open();
    // Like a pickled copy, a child continues where its parent was.
    if (settle_in_this_process()) at_beginning_ = true;
    end_pass(LoaderPass::State::replaced);
    if (!at_beginning_) elsewhere = enter_next_epoch();
    at_beginning_ = false;
    pass_ = pass;
    // A consumer that iterates twice will probably iterate again.
    if (std::exchange(has_begun_, true) && !options_.one_pass) goes_on_ = true;
    if (goes_on_) workers = workers_;
  }
  if (workers != nullptr) workers->go_on();
  if (elsewhere != nullptr) elsewhere->stop();
  return pass;
}

// Returns why `pass` has no further batch, or nothing if a batch follows.
std::optional<Loader::Wait> Loader::no_more(const LoaderPass& pass) {
  if (pass.state_ == LoaderPass::State::ended) return Wait::pass_ended;
  check_open();
  settle_in_this_process();
  if (pass.state_ == LoaderPass::State::replaced) return Wait::replaced;
  if (pass.state_ == LoaderPass::State::moved) return Wait::moved;
  if (steps_left() > 0) return {};
  end_pass(LoaderPass::State::ended);
  (void)enter_next_epoch();  // the workers are in that epoch already
  at_beginning_ = true;
  return Wait::pass_ended;
}

Loader::Wait Loader::poll_next(LoaderPass& pass, LoadedBatch* batch) {
  Workers::Taking next;
  {
    const std::lock_guard lock(every_loader);
    if (const auto why = no_more(pass)) return *why;
    if (workers_ != nullptr) next = workers_->take();
    if (next.taken != Workers::Taken::batch) return Wait::timed_out;
    ++step_;
  }
  *batch = std::move(next.batch);
  return Wait::ready;
}

Loader::Wait Loader::wait_next(LoaderPass& pass, double seconds, LoadedBatch* batch) {
  const Clock::time_point began = Clock::now();
  for (;;) {
    std::shared_ptr<Workers> workers;
    PlanRun run;
    Workers::Taking next;
    {
      const std::lock_guard lock(every_loader);
      if (const auto why = no_more(pass)) return *why;
      workers = workers_;
      if (workers == nullptr) {
        run = run_from_here();
      } else {
        next = workers->take();
        if (next.taken == Workers::Taken::batch) ++step_;
        // The next call starts new workers, which try the same batch again.
        if (next.taken == Workers::Taken::error) workers_ = nullptr;
      }
    }
    if (workers == nullptr) {
      start_workers(run);
      continue;
    }
    if (next.taken == Workers::Taken::batch) {
      *batch = std::move(next.batch);
      return Wait::ready;
    }
    if (next.taken == Workers::Taken::error) {
      workers->stop();
      std::rethrow_exception(next.error);
    }
    const double left = seconds - std::chrono::duration<double>(Clock::now() - began).count();
    if (left <= 0 || !workers->wait_for(next.ticket, left)) return Wait::timed_out;
  }
}

// Keeps the new workers unless another thread has started workers or the loader has moved.
void Loader::start_workers(const PlanRun& run) {
  std::shared_ptr<const RecordSource> source;
  std::shared_ptr<const FeatureSchema> features;
  bool goes_on;
  {
    const std::lock_guard lock(every_loader);
    check_open();
    source = source_;
    features = features_;
    goes_on = goes_on_;
  }
  auto workers = std::make_shared<Workers>(std::move(source), std::move(features), run, options_,
                                           goes_on, counters_);
  const std::lock_guard lock(every_loader);
  if (goes_on_ && !goes_on) return;  // another pass has begun meanwhile
  if (source_ != nullptr && workers_ == nullptr && run_from_here() == run) {
    workers_ = std::move(workers);
  }
}

void Loader::seek(std::uint64_t epoch, std::int64_t position) {
  PlanOptions rest = plan_options_;
  rest.start = position;
  auto partial = std::make_shared<const Plan>(rest);  // throws before any change
  std::shared_ptr<Workers> elsewhere;
  {
    const std::lock_guard lock(every_loader);
    check_open();
    settle_in_this_process();
    end_pass(LoaderPass::State::moved);
    at_beginning_ = true;
    if (epoch == epoch_ && position == this->position()) return;
    elsewhere = std::move(workers_);
    partial_.swap(partial);
    in_partial_ = position != 0;
    epoch_ = epoch;
    step_ = 0;
  }
  if (elsewhere != nullptr) elsewhere->stop();
}

Loader::Place Loader::place() const {
  const std::lock_guard lock(every_loader);
  check_open();
  return {epoch_, step_, position()};
}

const LoaderCounters& Loader::stats() const {
  const std::lock_guard lock(every_loader);
  check_open();
  return *counters_;
}

void Loader::close() noexcept {
  std::shared_ptr<const RecordSource> source;
  std::shared_ptr<const FeatureSchema> features;
  std::shared_ptr<Workers> workers;
  {
    const std::lock_guard lock(every_loader);
    settle_in_this_process();
    source.swap(source_);
    features.swap(features_);
    workers.swap(workers_);
  }
  if (workers != nullptr) workers->stop();
}

}  // namespace tfrfast
