// A plan's batches from some place on: the rest of an epoch, then whole epochs without end.
#pragma once

#include <cstdint>
#include <memory>

#include "core/order/plan.h"

namespace tfrfast {

struct PlanRun {
  std::uint64_t epoch = 0;
  std::int64_t step = 0;              // the run's first step, in `first`
  std::shared_ptr<const Plan> first;  // plan of the rest of `epoch`
  std::shared_ptr<const Plan> whole;  // plan of a whole epoch

  struct Step {
    std::uint64_t epoch = 0;
    std::int64_t step = 0;
    const Plan* plan = nullptr;
  };
  // The number of batches before the run enters the next epoch.
  std::uint64_t steps_left() const noexcept {
    return static_cast<std::uint64_t>(first->steps() - step);
  }

  // Returns batch `number` of the run. If a whole epoch has no steps, the run ends with `first`.
  Step at(std::uint64_t number) const noexcept {
    const std::uint64_t left = steps_left();
    const auto steps = static_cast<std::uint64_t>(whole->steps());
    if (number < left || steps == 0) {
      return {epoch, step + static_cast<std::int64_t>(number), first.get()};
    }
    number -= left;
    return {epoch + 1 + number / steps, static_cast<std::int64_t>(number % steps), whole.get()};
  }

  friend bool operator==(const PlanRun&, const PlanRun&) = default;
};

}  // namespace tfrfast
