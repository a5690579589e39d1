// What the kernels that decode keep from call to call: compiled descriptions, and decoders that
// have learnt the records' order.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/load/batch_work.h"
#include "tensorflow/feature_tensors.h"
#include "tensorflow/loading_plan.h"
#include "tensorflow/registry.h"

namespace tfrfast::tensorflow {

// Keeps the last thing that was made of some text or numbers. Safe from many threads.
template <class Made>
class LastMade {
 public:
  // `is_it(made)` tells whether the last one will do; else `make()` makes another.
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

// Workers that are not busy, all for the same source and features; a worker serves one call at a
// time. Safe from many threads.
template <class Worker>
class IdleWorkers {
 public:
  // `what` keeps the thing that workers are made for alive, and so its address its own.
  template <class Make>
  std::unique_ptr<Worker> take(const std::vector<std::shared_ptr<const void>>& what,
                               const Make& make) {
    {
      const std::lock_guard lock(mutex_);
      if (what_ != what) {
        idle_.clear();
        what_ = what;
      }
      if (!idle_.empty()) {
        std::unique_ptr<Worker> worker = std::move(idle_.back());
        idle_.pop_back();
        return worker;
      }
    }
    return make();
  }
  void put_back(const std::vector<std::shared_ptr<const void>>& what,
                std::unique_ptr<Worker> worker) {
    const std::lock_guard lock(mutex_);
    if (what_ == what) idle_.push_back(std::move(worker));
  }

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<const void>> what_;
  std::vector<std::unique_ptr<Worker>> idle_;
};

struct NamedFeatures {
  std::string text;
  std::shared_ptr<const FeaturePlan> plan;
};

class DecodingKernel {
 public:
  std::shared_ptr<const Source> source(std::string_view text) { return sources_.open(text); }
  std::shared_ptr<const NamedFeatures> features(std::string_view text);
  std::shared_ptr<const LoadingPlan> plan(std::span<const std::int64_t> numbers,
                                          std::span<const std::int64_t> chosen, std::int64_t key);

  // Reads, verifies and decodes, a cache-sized piece after the other. Throws Error.
  LoadedBatch load(const std::shared_ptr<const Source>& source,
                   const std::shared_ptr<const NamedFeatures>& features,
                   std::span<const std::int64_t> records, const bool* valid);

  // Decodes what has been read. Errors count rows where there are no `record_numbers`.
  std::vector<Column> decode(const std::shared_ptr<const NamedFeatures>& features,
                             std::span<const WireBytes> wires,
                             std::span<const std::int64_t> record_numbers);

 private:
  SourceHolder sources_;
  LastMade<NamedFeatures> features_;
  LastMade<LoadingPlan> plans_;
  IdleWorkers<BatchWork> works_;
  IdleWorkers<BatchDecoder> decoders_;
};

}  // namespace tfrfast::tensorflow
