// What the steps of an order read: of a sequence over this process's part of a source, and of a
// Loader's plan.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/encoding.h"
#include "core/order/plan_run.h"
#include "core/order/sequence.h"
#include "tensorflow/reading.h"
#include "tensorflow/source.h"

namespace tfrfast::tensorflow {

// Keeps the last object made from some text or numbers. Safe from many threads.
template <class Made>
class LastMade {
 public:
  // `is_it(made)` says whether the last object fits. If not, `make()` makes another.
  template <class IsIt, class Make>
  std::shared_ptr<const Made> get(const IsIt& is_it, const Make& make) {
    const std::lock_guard lock(mutex_);
    if (last_ == nullptr || !is_it(*last_)) last_ = std::make_shared<const Made>(make());
    return last_;
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<const Made> last_;
};

// Keeps the last decoded description. Safe from many threads.
template <class Description>
class LastDecoded {
 public:
  // Throws Error(invalid).
  std::shared_ptr<const Description> get(std::string_view encoded) {
    const std::shared_ptr<const Decoded> last = last_.get(
        [encoded](const Decoded& made) { return made.head == head_of(encoded); },
        [encoded] { return Decoded{std::string(head_of(encoded)), Description::decode(encoded)}; });
    return {last, &last->description};
  }

 private:
  struct Decoded {
    std::string head;
    Description description;
  };
  LastMade<Decoded> last_;
};

// Where a share's records lie: in some shards, and there some of the records.
struct ShareBounds {
  Progression shards;
  Progression records;  // of each shard
};
ShareBounds bounds_of(Files files, std::int64_t shard_count, std::int64_t max_records) noexcept;

// A sequence on some shards of a planned source, as on a source of their own: records are counted
// from 0. If there are fewer shards than processes, a share is some records of every shard. So the
// shares of several processes are disjoint, even if each process draws a different order.
// Immutable.
class Share {
 public:
  Share(std::shared_ptr<const Source> source, Files files,
        std::shared_ptr<const Sequence> sequence);

  bool is_of(const Source& source, Files files, const Sequence& sequence) const noexcept {
    return &source == source_.get() && files == files_ && &sequence == sequence_.get();
  }
  const std::shared_ptr<const Source>& source() const noexcept { return source_; }
  std::int64_t batch_count() const noexcept { return own_.batch_count(); }
  // The records of a batch, numbered as in the source. `seed` is the order's. Throws Error.
  std::vector<std::int64_t> records_of_batch(std::uint64_t seed, std::int64_t step) const;

 private:
  std::shared_ptr<const Source> source_;
  Files files_;
  std::shared_ptr<const Sequence> sequence_;  // on all shards
  Progression shards_;                        // the shards to read
  Progression records_;                       // the records to read in each shard
  // The first number of each shard, then the end of the last shard.
  std::vector<std::int64_t> first_records_{0};
  Sequence own_;  // on the records of this share
};

// Immutable. Steps run on from epoch to epoch. The first epoch may begin in the middle.
class LoadingPlan {
 public:
  // `plan` is the rest of `epoch`. A `key` of 0 means the Loader's own order. Throws Error(invalid)
  // if `plan` is not an encoded plan.
  LoadingPlan(std::string_view plan, std::int64_t epoch, std::int64_t key);

  bool is_of(std::string_view plan, std::int64_t epoch, std::int64_t key) const noexcept;

  // Plans with equal names have equal steps.
  std::string name() const {
    return head_ + " " + std::to_string(epoch_) + " " + std::to_string(key_);
  }

  // The records of a step, which are not located in a source. Their epoch is mixed with the key.
  // The result may not outlive the plan. Throws Error(invalid) if the step does not exist.
  BatchRows rows(std::int64_t step, bool with_draws = false) const;

 private:
  std::string head_;
  std::int64_t epoch_ = 0;
  std::int64_t key_ = 0;
  PlanRun run_;
};

}  // namespace tfrfast::tensorflow
