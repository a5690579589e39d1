#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/order/plan.h"
#include "orders.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

#ifdef NDEBUG
constexpr bool kOptimised = true;
#else
constexpr bool kOptimised = false;
#endif
#ifdef TFRFAST_TEST_SANITIZED
constexpr std::int64_t kMaxRecords = 65537;
#else
constexpr std::int64_t kMaxRecords = 1000003;
#endif

struct Batch {
  std::vector<std::int64_t> indices;
  std::vector<bool> valid;
};

Batch batch_of(const Plan& plan, std::uint64_t epoch, std::int64_t step) {
  const std::size_t count = plan.row_count(step);
  Batch batch;
  batch.indices.resize(count, -1);
  const auto valid = std::make_unique<bool[]>(count);
  REQUIRE(plan.rows(epoch, step, batch.indices.data(), valid.get()) == count);
  batch.valid.assign(valid.get(), valid.get() + count);
  return batch;
}

std::vector<Plan> ranks_of(PlanOptions options) {
  std::vector<Plan> ranks;
  for (options.rank = 0; options.rank < options.world; ++options.rank) ranks.emplace_back(options);
  return ranks;
}

// Counts how often each record was a real row.
class Tally {
 public:
  explicit Tally(std::int64_t num_records) : counts_(static_cast<std::size_t>(num_records)) {}

  // Takes all ranks' batches from `begin` to `end`, and checks that their shapes are as the
  // remainder promises.
  void take(const std::vector<Plan>& ranks, std::uint64_t epoch, std::int64_t begin,
            std::int64_t end) {
    const PlanOptions& options = ranks[0].options();
    const auto order = ranks[0].of_epoch(epoch);
    for (std::int64_t step = begin; step < end; ++step) {
      std::size_t min_rows = SIZE_MAX, max_rows = 0;
      for (std::size_t r = 0; r < ranks.size(); ++r) {
        const Plan& plan = ranks[r];
        const std::size_t count = plan.row_count(step);
        rows_.resize(std::max(rows_.size(), count));
        if (valid_size_ < count) {
          valid_ = std::make_unique<bool[]>(count);
          valid_size_ = count;
        }
        if (plan.rows(*order, step, rows_.data(), valid_.get()) != count) FAIL("row count");
        if (options.remainder != Remainder::keep) {
          if (count != static_cast<std::size_t>(options.batch_size)) FAIL("not full: ", count);
        }
        std::size_t real = 0;
        for (std::size_t i = 0; i < count; ++i) {
          const auto record = static_cast<std::size_t>(rows_[i]);
          if (record >= counts_.size()) FAIL("no such record: ", rows_[i]);
          if (!valid_[i]) continue;
          if (real++ != i) FAIL("a real row after padding");
          ++counts_[record];
        }
        min_rows = std::min(min_rows, real);
        max_rows = std::max(max_rows, real);
      }
      if (max_rows > static_cast<std::size_t>(options.batch_size))
        FAIL("too many rows: ", max_rows);
      if (max_rows - min_rows > 1) FAIL("split unevenly: ", min_rows, " and ", max_rows);
      if (max_rows == 0) FAIL("a step without rows");
    }
  }

  // Returns the number of records that were seen `times` times.
  std::int64_t seen(int times) const {
    return std::count(counts_.begin(), counts_.end(), static_cast<std::uint8_t>(times));
  }

 private:
  std::vector<std::uint8_t> counts_;
  std::vector<std::int64_t> rows_;
  std::unique_ptr<bool[]> valid_;
  std::size_t valid_size_ = 0;
};

std::int64_t max_steps(const std::vector<Plan>& ranks) {
  std::int64_t steps = 0;
  for (const Plan& plan : ranks) steps = std::max(steps, plan.steps());
  return steps;
}

void check_epoch(const PlanOptions& options, std::uint64_t epoch) {
  const std::vector<Plan> ranks = ranks_of(options);
  const std::int64_t records = options.order->records();
  const std::int64_t global_batch = options.world * options.batch_size;
  const std::int64_t steps = max_steps(ranks);
  REQUIRE(ranks[0].steps() == steps);
  for (const Plan& plan : ranks) {
    REQUIRE(plan.steps() >= steps - (options.remainder == Remainder::keep ? 1 : 0));
    REQUIRE(plan.row_count(plan.steps()) == 0);
    REQUIRE(plan.row_count(-1) == 0);
  }
  Tally tally(records);
  tally.take(ranks, epoch, 0, steps);
  if (options.remainder == Remainder::drop) {
    REQUIRE(steps == records / global_batch);
    REQUIRE(tally.seen(1) == steps * global_batch);
    REQUIRE(tally.seen(0) == records - steps * global_batch);
  } else {
    REQUIRE(steps == (records + global_batch - 1) / global_batch);
    REQUIRE(tally.seen(1) == records);
  }
}

}  // namespace

TEST_CASE("all ranks and steps together give each record as often as the mode promises") {
  for (const std::int64_t records : {0, 1, 2, 761, 65537, 262145, 1000003}) {
    for (const std::int64_t world : {1, 2, 3, 8}) {
      for (const std::int64_t batch_size : {1, 7, 32, 1024}) {
        for (const Remainder remainder : {Remainder::keep, Remainder::drop, Remainder::pad}) {
          for (const OrderKind kind : kOrderKinds) {
            // For long epochs, fewer combinations are tested. All remainders and small batches are
            // tested only with the world that divides nothing. Builds without optimisation test
            // only large batches. A sanitizer sees the same code in short epochs.
            if (records > kMaxRecords) continue;
            if (records > 65537 && !kOptimised && batch_size < 1024) continue;
            if (records > 65537 && world != 3) {
              if (batch_size < 32 || remainder == Remainder::drop) continue;
              if (world < 8 && remainder == Remainder::keep) continue;
            }
            CAPTURE(records);
            CAPTURE(world);
            CAPTURE(batch_size);
            CAPTURE(remainder);
            CAPTURE(kind);
            PlanOptions options;
            options.order =
                make_order(records, kind, {records < 1000 ? 8 : 200, 4, world == 8 ? 64 : 12});
            options.world = world;
            options.batch_size = batch_size;
            options.remainder = remainder;
            options.seed = 41;
            check_epoch(options, 3);
          }
        }
      }
    }
  }
}

TEST_CASE("a run stopped at any step carries on in another world with each record exactly once") {
  struct Run {
    std::int64_t world, batch_size;
  };
  for (const OrderKind kind : kOrderKinds) {
    for (const Run before : {Run{8, 7}, Run{5, 1}, Run{1, 32}, Run{3, 64}}) {
      PlanOptions options;
      options.order = make_order(761, kind, {9, 3, 8});
      options.seed = 6;
      options.world = before.world;
      options.batch_size = before.batch_size;
      const std::vector<Plan> first = ranks_of(options);
      for (std::int64_t stop = 0; stop <= max_steps(first); ++stop) {
        for (const Run after : {Run{5, 7}, Run{1, 1}, Run{2, 32}, Run{8, 50}}) {
          for (const Remainder remainder : {Remainder::keep, Remainder::drop, Remainder::pad}) {
            CAPTURE(stop);
            CAPTURE(after.world);
            Tally tally(761);
            tally.take(first, 4, 0, stop);
            PlanOptions rest = options;
            rest.start = first[0].position_after(stop - 1);
            REQUIRE(rest.start ==
                    std::min<std::int64_t>(stop * before.world * before.batch_size, 761));
            rest.world = after.world;
            rest.batch_size = after.batch_size;
            rest.remainder = remainder;
            const std::vector<Plan> second = ranks_of(rest);
            REQUIRE(second[0].order_description() == first[0].order_description());
            tally.take(second, 4, 0, max_steps(second));
            const std::int64_t dropped = remainder == Remainder::drop
                                             ? (761 - rest.start) % (after.world * after.batch_size)
                                             : 0;
            REQUIRE(tally.seen(1) == 761 - dropped);
            REQUIRE(tally.seen(0) == dropped);
          }
        }
      }
    }
  }
}

TEST_CASE("761 records in batches of 50 are 15 full batches and one of 11") {
  PlanOptions options;
  options.order = make_order(761);
  options.batch_size = 50;
  const Plan keep(options);
  REQUIRE(keep.steps() == 16);
  for (std::int64_t step = 0; step < 15; ++step) CHECK(keep.row_count(step) == 50);
  CHECK(keep.row_count(15) == 11);
  CHECK(keep.position_after(-1) == 0);
  CHECK(keep.position_after(14) == 750);
  CHECK(keep.position_after(15) == 761);

  options.remainder = Remainder::pad;
  const Plan pad(options);
  const Batch last = batch_of(pad, 0, 15);
  REQUIRE(last.indices.size() == 50);
  CHECK(std::count(last.valid.begin(), last.valid.end(), true) == 11);
  const Batch first = batch_of(pad, 0, 0);
  CHECK(std::equal(last.indices.begin() + 11, last.indices.end(), first.indices.begin()));

  options.remainder = Remainder::drop;
  CHECK(Plan(options).steps() == 15);
  CHECK(Plan(options).position_after(14) == 750);
}

TEST_CASE("ranks take consecutive slices of a global batch, in rank order") {
  PlanOptions options;
  options.order = make_order(103, OrderKind::in_order);
  options.batch_size = 10;
  options.world = 4;
  std::vector<std::int64_t> seen;
  const std::vector<Plan> ranks = ranks_of(options);
  for (std::int64_t step = 0; step < 3; ++step) {
    for (const Plan& plan : ranks) {
      const Batch batch = batch_of(plan, 0, step);
      seen.insert(seen.end(), batch.indices.begin(), batch.indices.end());
    }
  }
  std::vector<std::int64_t> expected(103);
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(seen == expected);
  CHECK(ranks[0].row_count(2) == 6);
  CHECK(ranks[2].row_count(2) == 6);
  CHECK(ranks[3].row_count(2) == 5);
}

TEST_CASE("padding of a set smaller than the world repeats its records") {
  PlanOptions options;
  options.order = make_order(2, OrderKind::in_order);
  options.world = 3;
  options.batch_size = 4;
  options.remainder = Remainder::pad;
  std::vector<std::int64_t> padding;
  for (const Plan& plan : ranks_of(options)) {
    REQUIRE(plan.steps() == 1);
    const Batch batch = batch_of(plan, 0, 0);
    REQUIRE(batch.indices.size() == 4);
    for (std::size_t i = 0; i < 4; ++i) {
      if (!batch.valid[i]) padding.push_back(batch.indices[i]);
    }
  }
  CHECK(padding == std::vector<std::int64_t>{0, 1, 0, 1, 0, 1, 0, 1, 0, 1});
}

TEST_CASE("a set without records has no batches in any mode") {
  for (const Remainder remainder : {Remainder::keep, Remainder::drop, Remainder::pad}) {
    PlanOptions options;
    options.order = choose({}, 50);
    options.remainder = remainder;
    const Plan plan(options);
    CHECK(plan.steps() == 0);
    CHECK(plan.positions() == 0);
    CHECK(plan.row_count(0) == 0);
    CHECK(plan.position_after(-1) == 0);
  }
}

TEST_CASE("chosen record numbers come each as often as they were given") {
  PlanOptions options;
  options.order = choose({7, 7, 7, 2, 9}, 10);
  options.batch_size = 3;
  const Plan plan(options);
  REQUIRE(plan.steps() == 2);
  std::vector<std::int64_t> seen;
  for (std::int64_t step = 0; step < 2; ++step) {
    const Batch batch = batch_of(plan, 1, step);
    seen.insert(seen.end(), batch.indices.begin(), batch.indices.end());
  }
  std::sort(seen.begin(), seen.end());
  CHECK(seen == std::vector<std::int64_t>{2, 7, 7, 7, 9});
}

TEST_CASE("epochs differ when shuffled and agree when not") {
  PlanOptions options;
  options.order = make_order(1000);
  options.batch_size = 1000;
  CHECK(batch_of(Plan(options), 0, 0).indices != batch_of(Plan(options), 1, 0).indices);
  options.order = make_order(1000, OrderKind::in_order);
  CHECK(batch_of(Plan(options), 0, 0).indices == batch_of(Plan(options), 1, 0).indices);
}

TEST_CASE("an order is described by what fixes it and by nothing else") {
  PlanOptions options;
  options.order = make_order(1000);
  options.seed = 5;
  const std::string text = Plan(options).order_description();
  CHECK(text == "order version=1 shuffle=exact seed=5 records=1000");
  PlanOptions other = options;
  other.batch_size = 9;
  other.world = 2;
  other.rank = 1;
  other.start = 17;
  other.remainder = Remainder::pad;
  CHECK(Plan(other).order_description() == text);
  other.seed = 6;
  CHECK(Plan(other).order_description() != text);
  CHECK(make_order(9, OrderKind::in_order)->describe(5) ==
        "order version=1 shuffle=none records=9");
  CHECK(
      make_order(9, OrderKind::block_shuffle, {2, 3, 4})->describe(5) ==
      "order version=1 shuffle=blocks block_records=2 window_blocks=3 streams=4 seed=5 records=9");
  CHECK(choose({1, 2}, 9)->describe(5) ==
        "order version=1 shuffle=exact seed=5 records=9 indices=2:16283186116202352693");
  CHECK(choose({1, 2}, 9)->describe(5) != choose({2, 1}, 9)->describe(5));
}

TEST_CASE("a plan over the most records there can be takes no memory for them") {
  PlanOptions options;
  options.order = make_order(std::int64_t{1} << 62);
  options.batch_size = kMaxBatchSize;
  options.world = kMaxWorld;
  options.rank = kMaxWorld - 1;
  const Plan plan(options);
  CHECK(plan.steps() == 2);
  options.batch_size = 1000;
  options.world = 1;
  options.rank = 0;
  const Plan small(options);
  const Batch batch = batch_of(small, 0, small.steps() - 1);
  CHECK(batch.indices.size() == (std::uint64_t{1} << 62) % 1000);
}

TEST_CASE("threads may share a plan") {
  PlanOptions options;
  options.order = make_order(100000);
  options.batch_size = 64;
  const Plan plan(options);
  std::vector<std::vector<std::int64_t>> seen(4);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::vector<std::int64_t> rows(64);
      for (auto step = static_cast<std::int64_t>(t); step < plan.steps(); step += 4) {
        const std::size_t count = plan.rows(0, step, rows.data(), nullptr);
        seen[t].insert(seen[t].end(), rows.begin(), rows.begin() + static_cast<int>(count));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  std::vector<std::int64_t> all;
  for (const auto& part : seen) all.insert(all.end(), part.begin(), part.end());
  std::sort(all.begin(), all.end());
  std::vector<std::int64_t> expected(100000);
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(all == expected);
}

TEST_CASE("options without a meaning are refused with what was given and what is allowed") {
  PlanOptions good;
  good.order = make_order(10);
  const auto refused = [&](auto change) {
    PlanOptions options = good;
    try {
      change(options);
      const Plan plan(options);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::invalid);
      return error.message();
    }
    return std::string("not refused");
  };
  CHECK(refused([](auto& o) { o.order = make_order(-3); }) ==
        "num_records is -3, but must be from 0 to 4611686018427387904.");
  CHECK(refused([](auto& o) { o.batch_size = 0; }) ==
        "batch_size is 0, but must be from 1 to 2147483647.");
  CHECK(refused([](auto& o) { o.world = 0; }) == "world is 0, but must be from 1 to 2147483647.");
  CHECK(refused([](auto& o) { o.rank = 1; }) ==
        "rank is 1, but must be 0 or more and less than world, which is 1.");
  CHECK(refused([](auto& o) { o.start = 11; }) ==
        "start is 11, but must be 0 or more and at most the positions of an epoch, which are 10.");
  CHECK(refused([](auto& o) { o.order = make_order(10, OrderKind::block_shuffle, {0, 1, 1}); }) ==
        "block_records is 0, but must be from 1 to 2147483647.");
  CHECK(refused([](auto& o) { o.order = choose({3, 10}, 10); }) ==
        "indices[1] is 10, but must be a record number: 0 or more and less than "
        "num_records, which is 10.");
}
