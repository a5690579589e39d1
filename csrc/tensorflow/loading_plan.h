// The steps of loader.to_tf_dataset(): a Loader's plan from where the loader stands, or another
// order of the same records. Travels as one vector of integers and a key;
// tfrfast/_tensorflow/loading.py writes it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/order/plan.h"

namespace tfrfast::tensorflow {

// Immutable. Steps run on from epoch to epoch, the first of which may be entered in the middle.
class LoadingPlan {
 public:
  // `chosen` are the plan's indices, if it has any; `key` 0 is the Loader's own order. Throws
  // Error(invalid) for numbers that no plan has.
  LoadingPlan(std::span<const std::int64_t> numbers, std::span<const std::int64_t> chosen,
              std::int64_t key);

  // Two plans of the same numbers and key are the same: they hold a fingerprint of `chosen`.
  bool is_of(std::span<const std::int64_t> numbers, std::int64_t key) const noexcept;

  struct Rows {
    std::vector<std::int64_t> records;
    std::unique_ptr<bool[]> valid;
  };
  Rows rows(std::int64_t step) const;  // throws Error(invalid) for a step that does not exist

 private:
  std::vector<std::int64_t> numbers_;
  std::int64_t key_ = 0;
  std::uint64_t first_epoch_ = 0;
  std::unique_ptr<const Plan> first_;
  std::unique_ptr<const Plan> whole_;
};

}  // namespace tfrfast::tensorflow
