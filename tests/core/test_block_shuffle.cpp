#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "core/order/block_shuffle.h"
#include "core/order/plan.h"

using namespace tfrfast;

namespace {

std::vector<std::int64_t> order_of(std::int64_t size, const BlockShape& shape, std::uint64_t seed,
                                   std::uint64_t epoch = 0) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  const BlockShuffle shuffle(size, shape);
  BlockShuffle::Epoch(shuffle, seed, epoch).evaluate(order.data(), order.size(), order.data());
  return order;
}

bool is_permutation_of_all(std::vector<std::int64_t> order) {
  std::sort(order.begin(), order.end());
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] != static_cast<std::int64_t>(i)) return false;
  }
  return true;
}

// Returns the ranks that read each block in the steps [0, steps).
std::map<std::int64_t, std::set<std::int64_t>> readers_of_blocks(PlanOptions options,
                                                                 std::int64_t steps) {
  const auto& shuffle = dynamic_cast<const BlockShuffle&>(*options.order);
  std::map<std::int64_t, std::set<std::int64_t>> readers;
  std::vector<std::int64_t> rows(static_cast<std::size_t>(options.batch_size));
  for (options.rank = 0; options.rank < options.world; ++options.rank) {
    const Plan plan(options);
    const auto epoch = plan.of_epoch(0);
    for (std::int64_t step = 0; step < std::min(steps, plan.steps()); ++step) {
      const std::size_t count = plan.rows(*epoch, step, rows.data(), nullptr);
      for (std::size_t i = 0; i < count; ++i) {
        readers[rows[i] / shuffle.shape().block_records].insert(options.rank);
      }
    }
  }
  return readers;
}

}  // namespace

TEST_CASE("a block shuffle is a bijection for every size and shape") {
  const BlockShape shapes[] = {{1, 1, 1},  {1, 3, 4},   {4, 1, 1},     {4, 2, 3},   {7, 3, 8},
                               {16, 4, 1}, {16, 5, 12}, {100, 16, 64}, {64, 1, 64}, {3, 100, 2}};
  for (const BlockShape& shape : shapes) {
    CAPTURE(shape.block_records);
    CAPTURE(shape.window_blocks);
    CAPTURE(shape.streams);
    for (std::int64_t size = 0; size < 700; size += size < 260 ? 1 : 37) {
      for (std::uint64_t seed = 0; seed < 3; ++seed) {
        CAPTURE(size);
        REQUIRE(is_permutation_of_all(order_of(size, shape, seed)));
      }
    }
    for (const std::int64_t size : {65536, 65537, 99991}) {
      CAPTURE(size);
      REQUIRE(is_permutation_of_all(order_of(size, shape, 3)));
    }
  }
}

TEST_CASE("a block shuffle has one answer for positions alone and in batches") {
  for (const BlockShape shape : {BlockShape{16, 4, 8}, BlockShape{100, 2, 3}}) {
    const std::vector<std::int64_t> order = order_of(3333, shape, 8, 5);
    const BlockShuffle shuffle(3333, shape);
    const BlockShuffle::Epoch epoch(shuffle, 8, 5);
    for (std::int64_t position = 3332; position >= 0; --position) {
      std::int64_t record;
      epoch.evaluate(&position, 1, &record);
      REQUIRE(record == order[static_cast<std::size_t>(position)]);
    }
  }
}

TEST_CASE("few blocks are in use at any time") {
  const BlockShape shape{50, 4, 8};
  const std::int64_t size = 60000 + 17;
  const std::vector<std::int64_t> order = order_of(size, shape, 2);
  std::map<std::int64_t, std::pair<std::size_t, std::size_t>> use;
  const auto streamed = static_cast<std::size_t>(BlockShuffle(size, shape).streamed_positions());
  REQUIRE(streamed > 58000);
  for (std::size_t i = 0; i < streamed; ++i) {
    auto [at, fresh] = use.try_emplace(order[i] / 50, i, i);
    at->second.second = i;
  }
  std::vector<int> change(streamed + 1);
  std::size_t longest = 0;
  for (const auto& [block, span] : use) {
    ++change[span.first];
    --change[span.second + 1];
    longest = std::max(longest, span.second - span.first);
  }
  int open = 0, max_open = 0;
  for (const int delta : change) max_open = std::max(max_open, open += delta);
  CHECK(max_open <= 8 * 4 + 2);  // and two blocks that lend records to the short block's place
  CHECK(max_open > 20);
}

TEST_CASE("streams ask for new blocks at different times") {
  const BlockShape shape{100, 8, 8};
  const std::int64_t size = 100 * 8 * 80;
  const std::vector<std::int64_t> order = order_of(size, shape, 2);
  std::set<std::int64_t> seen;
  std::size_t max_new = 0;
  for (std::size_t begin = 0; begin < order.size(); begin += 800) {
    const std::size_t before = seen.size();
    for (std::size_t i = begin; i < begin + 800; ++i) seen.insert(order[i] / 100);
    if (begin > 0) max_new = std::max(max_new, seen.size() - before);
  }
  // In each piece of 800 positions, a window of 8 blocks ends for one stream, never for all 8
  // streams.
  CHECK(max_new <= 16);
}

TEST_CASE("each block is read by one rank if the world divides the streams") {
  PlanOptions options;
  const auto shuffle =
      std::make_shared<const BlockShuffle>(64 * 10 * 20 + 333, BlockShape{20, 3, 64});
  options.order = shuffle;
  const std::int64_t streamed = shuffle->streamed_positions();
  for (const std::int64_t world : {1, 2, 4, 8, 16, 32, 64}) {
    for (const std::int64_t batch_size : {1, 7, 32}) {
      CAPTURE(world);
      CAPTURE(batch_size);
      options.world = world;
      options.batch_size = batch_size;
      // Before the tail. At most two blocks lend records to the short block's place.
      std::int64_t shared = 0;
      for (const auto& [block, ranks] :
           readers_of_blocks(options, streamed / (world * batch_size))) {
        shared += ranks.size() > 1;
      }
      CHECK(shared <= 2);
      // The whole epoch: a block of the tail is shared by the few ranks whose slices meet in the
      // block.
      std::int64_t reads = 0;
      const auto readers = readers_of_blocks(options, INT64_MAX);
      for (const auto& [block, ranks] : readers) reads += static_cast<std::int64_t>(ranks.size());
      CHECK(reads <= static_cast<std::int64_t>(readers.size()) + world + 2);
    }
  }
}

TEST_CASE("ranks that cannot share the streams evenly share few blocks") {
  PlanOptions options;
  options.order = std::make_shared<const BlockShuffle>(64 * 20 * 20, BlockShape{20, 2, 64});
  options.batch_size = 256;
  for (const std::int64_t world : {3, 5, 6, 12}) {
    CAPTURE(world);
    options.world = world;
    std::int64_t reads = 0;
    const auto readers = readers_of_blocks(options, INT64_MAX);
    for (const auto& [block, ranks] : readers) reads += static_cast<std::int64_t>(ranks.size());
    CHECK(static_cast<double>(reads) < 1.25 * static_cast<double>(readers.size()));
  }
}

TEST_CASE("the short block's records stand anywhere in the epoch") {
  const BlockShape shape{10, 2, 4};
  const std::int64_t size = 403;  // the last block has 3 records; the tail is a tenth of the epoch
  int early = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const std::vector<std::int64_t> order = order_of(size, shape, seed);
    early += std::find(order.begin(), order.end(), 402) - order.begin() < size / 2;
  }
  CHECK(early > 150);
  CHECK(early < 250);
}

TEST_CASE("a set of one block is shuffled through and through") {
  std::map<std::int64_t, int> first;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) ++first[order_of(8, {1024, 4, 64}, seed)[0]];
  REQUIRE(first.size() == 8);
  for (const auto& [record, times] : first) CHECK(std::abs(times - 250) < 75);
}
