// Positions a second: each kernel alone, the permutation, and plans of each order.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "core/order/block_shuffle.h"
#include "core/order/feistel.h"
#include "core/order/in_order.h"
#include "core/order/permutation.h"
#include "core/order/plan.h"
#include "core/order/shuffle.h"

namespace tfrfast {
namespace {

void permute(benchmark::State& state) {
  const Permutation permutation(state.range(0), 1, 0);
  const auto count = static_cast<std::size_t>(state.range(1));
  std::vector<std::int64_t> positions(count), records(count);
  std::iota(positions.begin(), positions.end(), state.range(0) / 2);
  for (auto _ : state) {
    permutation.evaluate(positions.data(), count, records.data());
    benchmark::DoNotOptimize(records.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * state.range(1));
}
BENCHMARK(permute)
    ->Name("permutation/evaluate")
    ->ArgNames({"size", "batch"})
    ->ArgsProduct({{2'000'000, 1'000'000'000, std::int64_t{1} << 40}, {1, 32, 4096}});

void make(benchmark::State& state) {
  std::uint64_t epoch = 0;
  for (auto _ : state) benchmark::DoNotOptimize(Permutation(2'000'000, 1, epoch++));
}
BENCHMARK(make)->Name("permutation/make");

void plan_rows(benchmark::State& state) {
  PlanOptions options;
  constexpr std::int64_t kRecords = 100'000'000;
  const std::shared_ptr<const Order> orders[] = {
      std::make_shared<const InOrder>(kRecords),
      std::make_shared<const Shuffle>(kRecords),
      std::make_shared<const BlockShuffle>(kRecords, BlockShape{}),
  };
  options.order = orders[state.range(0)];
  options.batch_size = state.range(1);
  const Plan plan(options);
  const auto epoch = plan.of_epoch(0);
  PlannedBatch batch;
  std::int64_t step = 0;
  for (auto _ : state) {
    plan.batch(*epoch, step, batch);
    benchmark::DoNotOptimize(batch.records.data());
    benchmark::ClobberMemory();
    if (++step == plan.steps()) step = 0;
  }
  state.SetItemsProcessed(state.iterations() * options.batch_size);
}
BENCHMARK(plan_rows)
    ->Name("plan/rows")
    ->ArgNames({"shuffle", "batch"})
    ->ArgsProduct({{0, 1, 2}, {1, 32, 4096}});

void run_kernel(benchmark::State& state, const FeistelKernel* kernel) {
  const RoundKeys keys = expand_key({1, 2}, 12);
  const Grid grid = grid_for(2'000'000);
  Lanes lanes{};
  for (auto _ : state) {
    kernel->forward(keys, grid, lanes, kLanes);
    benchmark::DoNotOptimize(&lanes);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kLanes));
}

const bool kernels_registered = [] {
  for (const FeistelKernel& kernel : feistel_kernels()) {
    if (!kernel.supported()) continue;
    benchmark::RegisterBenchmark((std::string("permutation/kernel/") + kernel.name).c_str(),
                                 run_kernel, &kernel);
  }
  return true;
}();

}  // namespace
}  // namespace tfrfast
