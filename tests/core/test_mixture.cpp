#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/order/mixture.h"
#include "orders.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

std::vector<std::int64_t> epoch_of(const Mixture& mixture, std::uint64_t seed,
                                   std::uint64_t epoch) {
  std::vector<std::int64_t> records(static_cast<std::size_t>(mixture.positions()));
  std::iota(records.begin(), records.end(), 0);
  mixture.of_epoch(seed, epoch)->evaluate(records.data(), records.size(), records.data());
  return records;
}

std::string refusal_of(const MixtureSpec& spec) {
  return refusal([&] { const Mixture mixture(spec); });
}

}  // namespace

TEST_CASE("threads may share an epoch of a mixture") {
  const Mixture mixture(mixed({50, 3, 7}, {5, 2, 1}, 20'000));
  const std::vector<std::int64_t> expected = epoch_of(mixture, 1, 2);
  const auto epoch = mixture.of_epoch(1, 2);
  std::vector<std::thread> threads;
  std::vector<int> right(4);
  for (std::size_t t = 0; t < right.size(); ++t) {
    threads.emplace_back([&, t] {
      std::vector<std::int64_t> records(expected.size());
      std::iota(records.begin(), records.end(), 0);
      for (std::size_t i = 0; i < records.size(); i += 500) {
        epoch->evaluate(records.data() + i, 500, records.data() + i);
      }
      right[t] = records == expected;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == std::vector<int>(4, 1));
}

TEST_CASE("a mixture that makes no sense is refused") {
  MixtureSpec spec = mixed({10, 20}, {1, 1}, 20);
  spec.segments[0].weights = {1};
  CHECK(holds(refusal_of(spec), "the number of weights is 1"));
  spec.segments[0].weights = {0, 0};
  CHECK(holds(refusal_of(spec), "the sum of all weights is 0"));
  spec.segments[0].weights = {-1, 2};
  CHECK(holds(refusal_of(spec), "a weight is -1"));
  spec.segments[0].weights = {kMaxPeriod, 1};
  CHECK(holds(refusal_of(spec), "the sum of all weights is 1048577"));
  spec.segments[0].weights = {1, 1};
  spec.segments[0].position = 3;
  CHECK(holds(refusal_of(spec), "from position 0 of epoch 0"));
  spec.segments[0].position = 0;
  spec.segments.push_back({1, 20, {1, 1}});
  CHECK(holds(refusal_of(spec), "at which weights change is 20"));
  spec.segments[1] = {0, 0, {1, 1}};
  CHECK(holds(refusal_of(spec), "must come after the one before it"));
  spec.segments.pop_back();
  spec.unit_rows = 3;
  CHECK(holds(refusal_of(spec), "length is 20, but must be a multiple of 3"));
  spec.unit_rows = 1;
  spec.repeats = false;
  spec.length = 22;
  CHECK(holds(refusal_of(spec), "Source 0 has 10 records, but an epoch needs 11"));
  spec.sources.clear();
  CHECK(holds(refusal_of(spec), "the number of sources is 0"));
}

TEST_CASE("rows in any order, and many at a time, are those of the same positions one by one") {
  for (const std::int64_t large : {3, 900}) {
    MixtureSpec spec = mixed({1000, 3, 70}, {large, 2, 1}, 5000);
    spec.segments.push_back({1, 2345, {1, large, 1}});
    const Mixture mixture(spec);
    const auto epoch = mixture.of_epoch(3, 1);
    std::vector<std::int64_t> positions(5000), together(5000);
    std::iota(positions.begin(), positions.end(), 0);
    for (std::size_t i = positions.size(); i-- > 1;) {
      std::swap(positions[i], positions[i * 7919 % (i + 1)]);
    }
    epoch->evaluate(positions.data(), positions.size(), together.data());
    for (std::size_t i = 0; i < positions.size(); ++i) {
      std::int64_t alone = -1;
      epoch->evaluate(&positions[i], 1, &alone);
      REQUIRE(alone == together[i]);
    }
  }
}
