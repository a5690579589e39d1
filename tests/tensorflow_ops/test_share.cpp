#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "../core/orders.h"
#include "source_fixture.h"
#include "tensorflow/orders.h"
#include "tensorflow/requests.h"
#include "tensorflow/source.h"

using namespace tfrfast;
using namespace tfrfast::tensorflow;
using namespace tfrfast::testing;
using namespace tfrfast::tensorflow::testing;

namespace {

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

}  // namespace

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
