#include "tensorflow/loading_plan.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/order/block_shuffle.h"
#include "core/order/chosen_order.h"
#include "core/order/exact_order.h"
#include "core/order/given_order.h"
#include "core/order/siphash.h"

namespace tfrfast::tensorflow {
namespace {

constexpr std::int64_t kVersion = 1;
constexpr std::size_t kNumbers = 15;

std::uint64_t seed_of(std::uint64_t seed, std::int64_t key) {
  if (key == 0) return seed;
  return siphash({static_cast<std::uint64_t>(key), 0}, {seed});
}

}  // namespace

LoadingPlan::LoadingPlan(std::span<const std::int64_t> numbers,
                         std::span<const std::int64_t> chosen, std::int64_t key)
    : numbers_(numbers.begin(), numbers.end()), key_(key) {
  if (numbers.size() != kNumbers || numbers[0] != kVersion) {
    throw Error(ErrorKind::invalid,
                "This is no plan of this version of tfrfast: the graph was built by another one. "
                "Build it again.");
  }
  PlanOptions options;
  const bool has_chosen = numbers[13] != 0;
  const std::int64_t positions = has_chosen ? static_cast<std::int64_t>(chosen.size()) : numbers[1];
  if (numbers[3] == 0) options.order = std::make_shared<const GivenOrder>(positions);
  if (numbers[3] == 1) options.order = std::make_shared<const ExactOrder>(positions);
  if (numbers[3] == 2) {
    options.order = std::make_shared<const BlockShuffle>(
        positions, BlockShape{numbers[4], numbers[5], numbers[6]});
  }
  if (has_chosen) {
    options.order = std::make_shared<const ChosenOrder>(
        options.order, std::vector(chosen.begin(), chosen.end()), numbers[1]);
  }
  options.batch_size = numbers[2];
  options.seed = seed_of(static_cast<std::uint64_t>(numbers[7]), key);
  options.rank = numbers[8];
  options.world = numbers[9];
  options.remainder = static_cast<Remainder>(numbers[10]);
  first_epoch_ = static_cast<std::uint64_t>(numbers[11]);
  whole_ = std::make_unique<const Plan>(options);
  options.start = numbers[12];
  first_ = std::make_unique<const Plan>(options);
}

bool LoadingPlan::is_of(std::span<const std::int64_t> numbers, std::int64_t key) const noexcept {
  return key == key_ &&
         std::equal(numbers.begin(), numbers.end(), numbers_.begin(), numbers_.end());
}

LoadingPlan::Rows LoadingPlan::rows(std::int64_t step) const {
  const Plan* plan = first_.get();
  std::uint64_t epoch = first_epoch_;
  if (step >= plan->steps() && whole_->steps() > 0) {
    step -= plan->steps();
    plan = whole_.get();
    epoch += 1 + static_cast<std::uint64_t>(step / plan->steps());
    step %= plan->steps();
  }
  const std::size_t count = plan->row_count(step);
  if (count == 0) throw Error(ErrorKind::invalid, "The plan has no such step.");
  Rows rows{std::vector<std::int64_t>(count), std::make_unique<bool[]>(count)};
  plan->rows(epoch, step, rows.records.data(), rows.valid.get());
  return rows;
}

}  // namespace tfrfast::tensorflow
