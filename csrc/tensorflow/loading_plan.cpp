#include "tensorflow/loading_plan.h"

#include "core/base/error.h"
#include "core/load/image_draws.h"
#include "core/order/siphash.h"

namespace tfrfast::tensorflow {

LoadingPlan::LoadingPlan(std::string_view plan, std::int64_t epoch, std::int64_t key)
    : head_(head_of(plan)), epoch_(epoch), key_(key) {
  PlanOptions options = Plan::decode(plan).options();
  if (key != 0) options.seed = siphash({static_cast<std::uint64_t>(key), 0}, {options.seed});
  run_.epoch = static_cast<std::uint64_t>(epoch);
  run_.first = std::make_shared<const Plan>(options);
  options.start = 0;
  run_.whole = std::make_shared<const Plan>(options);
}

bool LoadingPlan::is_of(std::string_view plan, std::int64_t epoch,
                        std::int64_t key) const noexcept {
  return key == key_ && epoch == epoch_ && head_of(plan) == head_;
}

LoadingPlan::StepRows LoadingPlan::rows(std::int64_t step, bool with_draws) const {
  const PlanRun::Step at = run_.at(static_cast<std::uint64_t>(step));
  const auto epoch = at.plan->of_epoch(at.epoch);
  const std::size_t count = step < 0 ? 0 : at.plan->row_count(*epoch, at.step);
  if (count == 0) throw Error(ErrorKind::invalid, "The plan has no such step.");
  StepRows rows{std::vector<std::int64_t>(count),
                std::make_unique<bool[]>(count),
                {},
                key_ == 0 ? at.epoch : siphash({static_cast<std::uint64_t>(key_), 1}, {at.epoch}),
                {}};
  at.plan->rows(*epoch, at.step, rows.records.data(), rows.valid.get());
  if (with_draws) rows.draws = image_draws(*at.plan, *epoch, at.epoch, at.step);
  rows.packed = at.plan->packed(*epoch, at.step);
  if (!rows.packed.tokens.empty()) rows.records.resize(rows.packed.records.size());
  return rows;
}

}  // namespace tfrfast::tensorflow
