// The steps of loader.to_tf_dataset(): a Loader's plan from the loader's place on, or another order
// of the same records.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/order/plan_run.h"

namespace tfrfast::tensorflow {

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

  struct StepRows {
    std::vector<std::int64_t> records;
    std::unique_ptr<bool[]> valid;
    std::vector<std::uint64_t> draws;  // of images; empty unless they were asked for
    std::uint64_t epoch = 0;           // of what is drawn for a step; mixed with the key
    Plan::PackedBatch packed;          // lives no longer than the plan
  };
  StepRows rows(std::int64_t step,
                bool with_draws = false) const;  // throws Error(invalid) if the step does not exist

 private:
  std::string head_;
  std::int64_t epoch_ = 0;
  std::int64_t key_ = 0;
  PlanRun run_;
};

}  // namespace tfrfast::tensorflow
