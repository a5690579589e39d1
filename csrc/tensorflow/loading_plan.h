// The steps of loader.to_tf_dataset(): a Loader's plan from where the loader stands. Travels as one
// vector of integers; tfrfast/_tensorflow/loading.py writes it.
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
  // `chosen` are the plan's indices, if it has any. Throws Error(invalid) for numbers that no plan
  // has.
  LoadingPlan(std::span<const std::int64_t> numbers, std::span<const std::int64_t> chosen);

  // Two plans of the same numbers are the same: they hold a fingerprint of `chosen`.
  bool is_of(std::span<const std::int64_t> numbers) const noexcept;

  struct Rows {
    std::vector<std::int64_t> records;
    std::unique_ptr<bool[]> valid;
  };
  Rows rows(std::int64_t step) const;  // throws Error(invalid) for a step that does not exist

 private:
  std::vector<std::int64_t> numbers_;
  std::uint64_t first_epoch_ = 0;
  std::unique_ptr<const Plan> first_;
  std::unique_ptr<const Plan> whole_;
};

}  // namespace tfrfast::tensorflow
