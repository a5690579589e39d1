#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "../core/orders.h"
#include "../core/shard_fixture.h"
#include "tensorflow/orders.h"

using namespace tfrfast;
using namespace tfrfast::tensorflow;
using namespace tfrfast::testing;

namespace {

using Rows = std::vector<std::int64_t>;

PlanOptions plan_options(std::int64_t start = 0) {
  PlanOptions options;
  options.order = make_order(10);
  options.seed = 5;
  options.batch_size = 4;
  options.start = start;
  return options;
}

Rows epoch_of(const LoadingPlan& plan, std::int64_t first_step, std::int64_t steps) {
  Rows all;
  for (std::int64_t step = first_step; step < first_step + steps; ++step) {
    const Rows rows = plan.rows(step).records;
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

Rows model_of(const PlanOptions& options, std::uint64_t epoch) {
  const Plan plan(options);
  Rows all;
  for (std::int64_t step = 0; step < plan.steps(); ++step) {
    Rows rows(plan.row_count(step));
    plan.rows(epoch, step, rows.data(), nullptr);
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

bool is_permutation_of_ten(Rows rows) {
  std::sort(rows.begin(), rows.end());
  Rows ten(10);
  std::iota(ten.begin(), ten.end(), 0);
  return rows == ten;
}

}  // namespace

TEST_CASE("loading plan: an epoch that is entered in the middle is followed by whole ones") {
  const LoadingPlan plan(Plan(plan_options(4)).encode(), 3, 0);
  CHECK(epoch_of(plan, 0, 2) == model_of(plan_options(4), 3));
  CHECK(epoch_of(plan, 2, 3) == model_of(plan_options(), 4));
  CHECK(epoch_of(plan, 5, 3) == model_of(plan_options(), 5));
}

TEST_CASE("loading plan: a key gives another order of the same records") {
  const std::string text = Plan(plan_options()).encode();
  const Rows own = epoch_of(LoadingPlan(text, 0, 0), 0, 3);
  const Rows one = epoch_of(LoadingPlan(text, 0, 1), 0, 3);
  const Rows two = epoch_of(LoadingPlan(text, 0, 2), 0, 3);
  CHECK(own != one);
  CHECK(one != two);
  CHECK(one == epoch_of(LoadingPlan(text, 0, 1), 0, 3));
  for (const Rows& rows : {own, one, two}) CHECK(is_permutation_of_ten(rows));
}

TEST_CASE("loading plan: padding is marked as not valid") {
  PlanOptions options = plan_options();
  options.remainder = Remainder::pad;
  const BatchRows rows = LoadingPlan(Plan(options).encode(), 0, 0).rows(2);
  REQUIRE(rows.records.size() == 4);
  const std::vector<bool> valid(rows.valid.get(), rows.valid.get() + 4);
  CHECK(valid == std::vector<bool>{true, true, false, false});
}

TEST_CASE("loading plan: steps that do not exist are refused") {
  const LoadingPlan plan(Plan(plan_options()).encode(), 0, 0);
  CHECK(error_of([&] { plan.rows(-1); }).kind() == ErrorKind::invalid);
  PlanOptions options = plan_options();
  options.order = make_order(0);
  const LoadingPlan empty(Plan(options).encode(), 0, 0);
  CHECK(error_of([&] { empty.rows(0); }).kind() == ErrorKind::invalid);
  CHECK(error_of([] { LoadingPlan("no plan", 0, 0); }).kind() == ErrorKind::invalid);
}
