#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/order/mixture.h"
#include "core/order/plan.h"
#include "orders.h"

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
  try {
    const Mixture mixture(spec);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::invalid);
    return error.message();
  }
  return "not refused";
}

}  // namespace

TEST_CASE("every position of every epoch is counted as it comes, whatever the weights become") {
  for (const Arrangement arrangement : {Arrangement::permuted, Arrangement::spread}) {
    for (const bool repeats : {true, false}) {
      MixtureSpec spec = mixed({130, 60, 9}, {5, 2, 0}, 50);
      spec.arrangement = arrangement;
      spec.repeats = repeats;
      spec.segments.push_back({0, 13, {2, 1, 0}});
      spec.segments.push_back({0, 15, {7, 3, 1}});
      spec.segments.push_back({2, 0, {1, 1, 0}});
      spec.segments.push_back({3, 49, {300, 2, 5}});
      const Mixture mixture(spec);
      std::vector<std::int64_t> counts(3);
      std::vector<std::vector<int>> times{std::vector<int>(130), std::vector<int>(60),
                                          std::vector<int>(9)};
      for (std::uint64_t epoch = 0; epoch < 6; ++epoch) {
        const std::vector<std::int64_t> records = epoch_of(mixture, 7, epoch);
        for (std::size_t p = 0; p < records.size(); ++p) {
          CAPTURE(epoch);
          CAPTURE(p);
          const auto position = static_cast<std::int64_t>(p);
          REQUIRE(mixture.counts(7, epoch, position) == counts);
          const auto& first = mixture.first_records();
          const auto source = static_cast<std::size_t>(
              std::upper_bound(first.begin(), first.end(), records[p]) - first.begin() - 1);
          REQUIRE(source < 3);
          ++counts[source];
          ++times[source][static_cast<std::size_t>(records[p] - first[source])];
        }
        if (!repeats) {
          for (std::vector<int>& source : times) {
            CHECK(*std::max_element(source.begin(), source.end()) <= 1);
            std::fill(source.begin(), source.end(), 0);
          }
        }
      }
    }
  }
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

TEST_CASE("units go to one rank whole, and none is lost") {
  MixtureSpec spec = mixed({100, 40}, {2, 1}, 120);
  spec.unit_rows = 8;
  const auto mixture = std::make_shared<const Mixture>(spec);
  const std::vector<std::int64_t> expected = epoch_of(*mixture, 5, 1);
  for (std::int64_t world = 1; world <= 17; ++world) {
    std::vector<std::int64_t> taken;
    for (std::int64_t step = 0; step <= 15; ++step) {
      for (std::int64_t rank = 0; rank < world; ++rank) {
        const Plan plan({mixture, 5, 8, rank, world, Remainder::keep, 0});
        const std::size_t rows = plan.row_count(step);
        REQUIRE((rows == 0 || rows == 8));
        std::vector<std::int64_t> records(rows);
        plan.rows(1, step, records.data(), nullptr);
        for (const std::int64_t record : records) CHECK((record < 100) == (records[0] < 100));
        taken.insert(taken.end(), records.begin(), records.end());
      }
    }
    CHECK(taken == expected);
  }
  CHECK_THROWS_WITH_AS(Plan({mixture, 5, 4, 0, 1, Remainder::keep, 0}),
                       doctest::Contains("batch_size is 4, but must be 8"), Error);
  CHECK_THROWS_WITH_AS(Plan({mixture, 5, 8, 0, 1, Remainder::keep, 4}),
                       doctest::Contains("start is 4, but must be a multiple of 8"), Error);
}

TEST_CASE("a mixture that makes no sense is refused") {
  MixtureSpec spec = mixed({10, 20}, {1, 1}, 20);
  spec.segments[0].weights = {1};
  CHECK(refusal_of(spec).find("the number of weights is 1") != std::string::npos);
  spec.segments[0].weights = {0, 0};
  CHECK(refusal_of(spec).find("the sum of all weights is 0") != std::string::npos);
  spec.segments[0].weights = {-1, 2};
  CHECK(refusal_of(spec).find("a weight is -1") != std::string::npos);
  spec.segments[0].weights = {kMaxPeriod, 1};
  CHECK(refusal_of(spec).find("the sum of all weights is 1048577") != std::string::npos);
  spec.segments[0].weights = {1, 1};
  spec.segments[0].position = 3;
  CHECK(refusal_of(spec).find("from position 0 of epoch 0") != std::string::npos);
  spec.segments[0].position = 0;
  spec.segments.push_back({1, 20, {1, 1}});
  CHECK(refusal_of(spec).find("at which weights change is 20") != std::string::npos);
  spec.segments[1] = {0, 0, {1, 1}};
  CHECK(refusal_of(spec).find("must come after the one before it") != std::string::npos);
  spec.segments.pop_back();
  spec.unit_rows = 3;
  CHECK(refusal_of(spec).find("length is 20, but must be a multiple of 3") != std::string::npos);
  spec.unit_rows = 1;
  spec.repeats = false;
  spec.length = 22;
  CHECK(refusal_of(spec).find("Source 0 has 10 records, but an epoch needs 11") !=
        std::string::npos);
  spec.sources.clear();
  CHECK(refusal_of(spec).find("the number of sources is 0") != std::string::npos);
}
