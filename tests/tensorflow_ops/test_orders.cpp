#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "../core/orders.h"
#include "../core/shard_fixture.h"
#include "core/base/thread.h"
#include "core/order/sequence.h"
#include "source_fixture.h"
#include "tensorflow/orders.h"
#include "tensorflow/requests.h"
#include "tensorflow/source.h"

using namespace tfrfast;
using namespace tfrfast::tensorflow;
using namespace tfrfast::testing;
using namespace tfrfast::tensorflow::testing;

namespace {

std::shared_ptr<const int> get(LastMade<int>& last, int wanted, std::atomic<int>& made) {
  return last.get([wanted](int value) { return value == wanted; },
                  [wanted, &made] {
                    ++made;
                    return wanted;
                  });
}

std::string sequence_of(std::int64_t records) {
  Sequence sequence;
  sequence.records = {0, 1, records};
  sequence.order = make_order(records, OrderKind::in_order);
  sequence.positions = {0, 1, records};
  return sequence.encode();
}

using Numbers = std::vector<std::int64_t>;
using Counts = std::vector<std::size_t>;
constexpr auto kMaxStride = std::numeric_limits<std::int64_t>::max();

Sequence batches(const Source& source, std::int64_t rows, OrderKind kind = OrderKind::in_order) {
  Sequence sequence;
  const auto records = static_cast<std::int64_t>(source.shard_set().record_count());
  sequence.records = sequence.positions = {0, 1, records};
  sequence.order = make_order(sequence.records.count, kind, {2, 2, 2});
  sequence.batch_rows = rows;
  return sequence;
}

Numbers numbers_of(const std::shared_ptr<const Source>& source, Files files,
                   const Sequence& sequence) {
  const Share share(source, files, std::make_shared<const Sequence>(sequence));
  Numbers all;
  for (std::int64_t step = 0; step < share.batch_count(); ++step) {
    const Numbers batch = share.records_of_batch(7, step);
    CHECK_FALSE(batch.empty());
    all.insert(all.end(), batch.begin(), batch.end());
  }
  return all;
}

// The record numbers that one of several processes reads, in file order.
Numbers model_of(const Counts& counts, std::int64_t first, std::int64_t stride) {
  const bool by_file = stride <= static_cast<std::int64_t>(counts.size());
  Numbers numbers;
  std::int64_t number = 0;
  for (std::size_t shard = 0; shard < counts.size(); ++shard) {
    for (std::size_t record = 0; record < counts[shard]; ++record, ++number) {
      const auto which = static_cast<std::int64_t>(by_file ? shard : record);
      if (which % stride == first) numbers.push_back(number);
    }
  }
  return numbers;
}

Numbers sorted(Numbers numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

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
    PlannedBatch batch;
    plan.batch(*plan.of_epoch(epoch), step, batch);
    all.insert(all.end(), batch.records.begin(), batch.records.end());
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

TEST_CASE("last made: what fits is kept, what does not is made and takes its place") {
  LastMade<int> last;
  std::atomic<int> made{0};
  const auto first = get(last, 1, made);
  CHECK(get(last, 1, made) == first);
  CHECK(made == 1);
  CHECK(*get(last, 2, made) == 2);
  CHECK(*get(last, 1, made) == 1);
  CHECK(made == 3);
  CHECK(*first == 1);
}

TEST_CASE("last made: if making fails, the one before it is kept") {
  LastMade<int> last;
  std::atomic<int> made{0};
  const auto first = get(last, 1, made);
  const auto is_two = [](int value) { return value == 2; };
  const auto fail = []() -> int { throw std::runtime_error("no"); };
  CHECK_THROWS_AS(last.get(is_two, fail), std::runtime_error);
  CHECK(get(last, 1, made) == first);
}

TEST_CASE("last made: threads that want different things each get their own") {
  LastMade<int> last;
  std::atomic<int> made{0};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int wanted = 0; wanted < 4; ++wanted) {
    threads.push_back(start_thread([&, wanted] {
      for (int i = 0; i < 1000; ++i) wrong += *get(last, wanted, made) != wanted;
    }));
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("last decoded: the same text is decoded once, other text takes its place") {
  LastDecoded<Sequence> last;
  const auto first = last.get(sequence_of(3));
  CHECK(first->records.count == 3);
  CHECK(last.get(sequence_of(3)) == first);
  CHECK(last.get(sequence_of(4))->records.count == 4);
  CHECK(last.get(sequence_of(3)) != first);
  CHECK(error_of([&] { last.get("no sequence"); }).kind() == ErrorKind::invalid);
  CHECK(last.get(sequence_of(3))->records.count == 3);
}

TEST_CASE("share: where there is a file for each process, each takes whole files") {
  const TemporaryFolder folder;
  const auto source = planned_source(write_shards(folder, {2, 3, 1, 2}));
  CHECK(numbers_of(source, {0, 2}, batches(*source, 2)) == Numbers{0, 1, 5});
  CHECK(numbers_of(source, {1, 2}, batches(*source, 2)) == Numbers{2, 3, 4, 6, 7});
}

TEST_CASE("share: where there are fewer files than processes, all take from every file") {
  const TemporaryFolder folder;
  const auto source = planned_source(write_shards(folder, {5, 3}));
  CHECK(numbers_of(source, {0, 3}, batches(*source, 2)) == Numbers{0, 3, 5});
  CHECK(numbers_of(source, {1, 3}, batches(*source, 2)) == Numbers{1, 4, 6});
  CHECK(numbers_of(source, {2, 3}, batches(*source, 2)) == Numbers{2, 7});
}

TEST_CASE("share: all shares together have every record exactly once, in any order") {
  const TemporaryFolder folder;
  for (const Counts& counts : {Counts{7}, Counts{4, 0, 9}, Counts{1, 2, 3, 4, 5}, Counts{0, 0}}) {
    const auto shards = write_shards(folder, counts);
    const auto source = planned_source(shards);
    for (std::int64_t stride = 1; stride <= 7; ++stride) {
      for (std::int64_t first = 0; first < stride; ++first) {
        CAPTURE(counts.size());
        CAPTURE(stride);
        CAPTURE(first);
        const Numbers model = model_of(counts, first, stride);
        for (const OrderKind kind : kOrderKinds) {
          const Numbers numbers = numbers_of(source, {first, stride}, batches(*source, 3, kind));
          CHECK(sorted(numbers) == model);
        }
      }
    }
  }
}

TEST_CASE("share: however large the stride, the first share has what begins the files") {
  const TemporaryFolder folder;
  const auto shards = write_shards(folder, {3, 0, 2, 4});
  for (const std::int64_t stride : {std::int64_t{1} << 40, kMaxStride}) {
    const auto source = planned_source(shards);
    CHECK(numbers_of(source, {0, stride}, batches(*source, 2)) == Numbers{0, 3, 5});
    CHECK(numbers_of(source, {stride - 1, stride}, batches(*source, 2)).empty());
  }
}

TEST_CASE("share: files are given by a first one and a stride") {
  CHECK(files_of(Numbers{2, 3}) == Files{2, 3});
  for (const Numbers& numbers :
       {Numbers{}, Numbers{1}, Numbers{-1, 2}, Numbers{0, 0}, Numbers{0, 1, 1}}) {
    CHECK(error_of([&] { files_of(numbers); }).kind() == ErrorKind::invalid);
  }
}

TEST_CASE("share: steps are given by a key, files, an edition, and where they begin and end") {
  const TemporaryFolder folder;
  const auto source = planned_source(write_shards(folder, {5}));
  const std::string order = batches(*source, 2).encode();
  Requests requests;
  const auto adopted = adopt_source(source->spec(), source->records());
  const std::string text = adopted->spec().encode();
  const Request request = requests.find(text, order, Numbers{7, 0, 1, 0, 1, 3}, {});
  CHECK(request.count == 2);
  CHECK(request.rows(0).records == Numbers{2, 3});
  CHECK(request.rows(1).records == Numbers{4});
  for (const Numbers& numbers :
       {Numbers{}, Numbers{0, 0, 1, 0, 1}, Numbers{0, 0, 1, 0, 0, 0}, Numbers{0, 0, 1, 0, -1, 1},
        Numbers{0, 0, 0, 0, 0, 1}, Numbers{0, 0, 1, -1, 0, 1}}) {
    const Error error = error_of([&] { requests.find("", order, numbers, {}); });
    CHECK(error.kind() == ErrorKind::invalid);
  }
}

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
  const std::vector<bool> valid(rows.planned.valid.get(), rows.planned.valid.get() + 4);
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
