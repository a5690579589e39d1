#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <vector>

#include "../core/orders.h"
#include "core/order/permutation.h"
#include "core/storage/storage.h"
#include "core/storage/storage_options.h"
#include "source_fixture.h"
#include "tensorflow/registry.h"
#include "tensorflow/share.h"

using namespace tfrfast;
using namespace tfrfast::tensorflow;
using namespace tfrfast::testing;
using namespace tfrfast::tensorflow::testing;

namespace {

using Numbers = std::vector<std::int64_t>;
using Strings = std::vector<std::string>;
using Counts = std::vector<std::size_t>;
constexpr auto kMaxStride = std::numeric_limits<std::int64_t>::max();

// A record has 10 bytes, or so many that a block has one or two records.
constexpr std::size_t kLongRecord = 600 << 10;

constexpr Progression kAll{0, 1, kMaxPermutationSize};

Sequence batches(const Source& source, std::int64_t rows, OrderKind kind = OrderKind::in_order) {
  Sequence sequence;
  const auto records = static_cast<std::int64_t>(source.shard_set().record_count());
  sequence.records = sequence.positions = {0, 1, records};
  sequence.order = make_order(sequence.records.count, kind, {2, 2, 2});
  sequence.batch_rows = rows;
  return sequence;
}

Numbers numbers_of(const Share& share, const Sequence& sequence) {
  Numbers all;
  for (std::int64_t step = 0; step < share.batch_count(sequence); ++step) {
    const Numbers batch = share.records_of_batch(sequence, 7, step);
    CHECK_FALSE(batch.empty());
    all.insert(all.end(), batch.begin(), batch.end());
  }
  return all;
}

// Returns the records found block by block. Checks that reading all blocks at once finds the same.
Strings read_blocks(const Share& share, const Progression& wanted = kAll) {
  Strings all;
  for (std::int64_t block = 0; block < share.block_count(); ++block) {
    const Found found = share.find(wanted, block, block + 1);
    CHECK(found.troubles.empty());
    const Strings payloads = payloads_of(share.source()->read(found.rows));
    all.insert(all.end(), payloads.begin(), payloads.end());
  }
  const Found found = share.find(wanted, 0, share.block_count());
  CHECK(payloads_of(share.source()->read(found.rows)) == all);
  return all;
}

Strings payloads_of(const std::vector<TestShard>& shards) {
  Strings all;
  for (const TestShard& shard : shards) {
    for (std::size_t i = 0; i < shard.records(); ++i) all.push_back(shard.record(i));
  }
  return all;
}

Strings payloads_of(const std::vector<TestShard>& shards, const Numbers& numbers) {
  const Strings all = payloads_of(shards);
  Strings chosen;
  for (const std::int64_t number : numbers) chosen.push_back(all[static_cast<std::size_t>(number)]);
  return chosen;
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
  CHECK(numbers_of(Share(source, {0, 2}), batches(*source, 2)) == Numbers{0, 1, 5});
  CHECK(numbers_of(Share(source, {1, 2}), batches(*source, 2)) == Numbers{2, 3, 4, 6, 7});
}

TEST_CASE("share: where there are fewer files than processes, all take from every file") {
  const TemporaryFolder folder;
  const auto source = planned_source(write_shards(folder, {5, 3}));
  CHECK(numbers_of(Share(source, {0, 3}), batches(*source, 2)) == Numbers{0, 3, 5});
  CHECK(numbers_of(Share(source, {1, 3}), batches(*source, 2)) == Numbers{1, 4, 6});
  CHECK(numbers_of(Share(source, {2, 3}), batches(*source, 2)) == Numbers{2, 7});
}

TEST_CASE("share: all shares together have every record exactly once, in any order") {
  const TemporaryFolder folder;
  for (const Counts& counts : {Counts{7}, Counts{4, 0, 9}, Counts{1, 2, 3, 4, 5}, Counts{0, 0}}) {
    const auto shards = write_shards(folder, counts);
    const auto source = planned_source(shards);
    const auto streamed = streamed_source(shards);
    for (std::int64_t stride = 1; stride <= 7; ++stride) {
      for (std::int64_t first = 0; first < stride; ++first) {
        CAPTURE(counts.size());
        CAPTURE(stride);
        CAPTURE(first);
        const Numbers model = model_of(counts, first, stride);
        const Share share(source, {first, stride});
        for (const OrderKind kind : kOrderKinds) {
          const Numbers numbers = numbers_of(share, batches(*source, 3, kind));
          CHECK(sorted(numbers) == model);
        }
        CHECK(read_blocks(Share(streamed, {first, stride})) == payloads_of(shards, model));
      }
    }
  }
}

namespace {

// A file order. Counts how often it is made for other records.
class CountingOrder final : public Order {
 public:
  CountingOrder(std::int64_t records, int& made)
      : Order(records, records),
        made_(made),
        in_file_order_(make_order(records, OrderKind::in_order)) {}
  std::unique_ptr<const EpochOrder> of_epoch(std::uint64_t seed,
                                             std::uint64_t epoch) const override {
    return in_file_order_->of_epoch(seed, epoch);
  }
  std::shared_ptr<const Order> over(std::int64_t records) const override {
    ++made_;
    return std::make_shared<const CountingOrder>(records, made_);
  }
  std::string describe_shuffle(std::uint64_t) const override { return ""; }
  const char* name() const noexcept override { return "counting"; }
  void encode(Encoder&) const override {}

 private:
  int& made_;
  std::shared_ptr<const Order> in_file_order_;
};

}  // namespace

TEST_CASE("share: the order of its records is made once, not for each batch") {
  const TemporaryFolder folder;
  const auto source = planned_source(write_shards(folder, {3, 3, 3}));
  const Share share(source, {0, 2});
  int made = 0;
  Sequence sequence = batches(*source, 2, OrderKind::in_order);
  sequence.order = std::make_shared<const CountingOrder>(9, made);
  CHECK(numbers_of(share, sequence) == Numbers{0, 1, 2, 6, 7, 8});
  CHECK(made == 1);
  sequence.records = {1, 1, 8};
  sequence.positions = {0, 1, 8};
  sequence.order = std::make_shared<const CountingOrder>(8, made);
  CHECK(numbers_of(share, sequence) == Numbers{1, 2, 6, 7, 8});
  CHECK(made == 2);
}

TEST_CASE("share: a file of many blocks is read block by block") {
  const TemporaryFolder folder;
  const auto shards = write_shards(folder, {7, 1}, kLongRecord);
  const Counts counts = {7, 1};
  const auto source = streamed_source(shards);
  CHECK(Share(source, {}).block_count() == 6);
  for (std::int64_t stride = 1; stride <= 3; ++stride) {
    for (std::int64_t first = 0; first < stride; ++first) {
      CAPTURE(stride);
      CAPTURE(first);
      const Numbers model = model_of(counts, first, stride);
      CHECK(read_blocks(Share(source, {first, stride})) == payloads_of(shards, model));
    }
  }
}

TEST_CASE("share: take, skip and shard choose among the records of the share, indexed or not") {
  const TemporaryFolder folder;
  const Counts counts = {5, 0, 6, 1};
  const auto shards = write_shards(folder, counts, kLongRecord);
  for (const Files files : {Files{0, 1}, Files{1, 2}, Files{1, 5}}) {
    const Numbers model = model_of(counts, files.first, files.stride);
    for (const Progression& wanted :
         {Progression{0, 1, 2}, Progression{2, 1, 9}, Progression{1, 2, 3}, Progression{3, 4, 2},
          Progression{5, 1, 1}, Progression{7, 1, 100}, Progression{0, 1, 0}}) {
      CAPTURE(files.stride);
      CAPTURE(wanted.first);
      CAPTURE(wanted.stride);
      Numbers expected;
      for (std::int64_t i = 0; i < wanted.count; ++i) {
        const auto at = static_cast<std::size_t>(wanted.at(i));
        if (at < model.size()) expected.push_back(model[at]);
      }
      const Share share(streamed_source(shards), files);
      CHECK(read_blocks(share, wanted) == payloads_of(shards, expected));
      // Now all counts are known, and only the necessary blocks of files are read.
      Strings read;
      std::int64_t blocks = 0;
      for (std::int64_t turn = 0; turn < (files.stride == 2 ? 2 : 4); ++turn) {
        const auto [begin, end] = share.blocks_of_file(wanted, turn);
        blocks += end - begin;
        const Found found = share.find(wanted, begin, end);
        const Strings payloads = payloads_of(share.source()->read(found.rows));
        read.insert(read.end(), payloads.begin(), payloads.end());
      }
      CHECK(read == payloads_of(shards, expected));
      // Files are read from their beginning, up to the last record that is wanted.
      if (files.stride == 1 && wanted.at(wanted.count) == 2) CHECK(blocks < share.block_count());
    }
  }
}

TEST_CASE("share: damage belongs to those who read on to it") {
  const TemporaryFolder folder;
  auto shards = write_shards(folder, {2}, kLongRecord);
  shards[0].append(std::string(2 << 20, 'x'));
  const Share share(streamed_source(shards), {});
  const auto errors = [&](const Progression& wanted) {
    return share.find(wanted, 0, share.block_count()).troubles.size();
  };
  CHECK(errors(kAll) == 1);
  CHECK(errors({1, 1, kMaxPermutationSize - 1}) == 1);
  CHECK(errors({0, 1, 2}) == 0);
  CHECK(errors({0, 1, 3}) == 1);
}

TEST_CASE("share: however large the stride, the first share has what begins the files") {
  const TemporaryFolder folder;
  const auto shards = write_shards(folder, {3, 0, 2, 4});
  for (const std::int64_t stride : {std::int64_t{1} << 40, kMaxStride}) {
    const auto streamed = streamed_source(shards);
    const Share first(streamed, {0, stride});
    CHECK(read_blocks(first) == payloads_of(shards, {0, 3, 5}));
    CHECK(read_blocks(first, {1, 2, 4}) == payloads_of(shards, {3}));
    CHECK(read_blocks(Share(streamed, {1, stride})) == payloads_of(shards, {1, 4, 6}));
    for (const std::int64_t none : {std::int64_t{4}, stride - 1, stride}) {
      CHECK(read_blocks(Share(streamed, {none, stride})).empty());
    }
    const auto source = planned_source(shards);
    CHECK(numbers_of(Share(source, {0, stride}), batches(*source, 2)) == Numbers{0, 3, 5});
    CHECK(numbers_of(Share(source, {stride - 1, stride}), batches(*source, 2)).empty());
  }
}

TEST_CASE("share: a single record may be chosen with any stride") {
  const TemporaryFolder folder;
  const auto shards = write_shards(folder, {5, 4});
  // Three times the first stride is -1 in 64 bits.
  for (const std::int64_t stride : {std::int64_t{6148914691236517205}, kMaxStride - 1}) {
    const Progression one{1, stride, 1};
    CHECK(read_blocks(Share(streamed_source(shards), {}), one) == payloads_of(shards, {1}));
    CHECK(read_blocks(Share(streamed_source(shards), {1, 3}), one) == payloads_of(shards, {4}));
  }
}

TEST_CASE("share: the blocks of its files follow one another") {
  const TemporaryFolder folder;
  const Share share(streamed_source(write_shards(folder, {7, 1, 0, 4}, kLongRecord)), {1, 2});
  CHECK(share.blocks_of_file(kAll, 0) == std::pair<std::int64_t, std::int64_t>{0, 1});
  CHECK(share.blocks_of_file(kAll, 1) == std::pair<std::int64_t, std::int64_t>{1, 4});
  CHECK(share.block_count() == 4);
}

TEST_CASE("share: files and blocks that do not exist are refused") {
  const TemporaryFolder folder;
  const auto source = streamed_source(write_shards(folder, {1, 1, 1}));
  const auto check_refused = [](const Error& error, const std::string& message) {
    CHECK(error.kind() == ErrorKind::out_of_range);
    CHECK(error.message() == message);
  };
  const Share share(source, {0, 2});
  check_refused(error_of([&] { share.blocks_of_file(kAll, -1); }),
                "File -1 does not exist: there are 2 files.");
  check_refused(error_of([&] { share.blocks_of_file(kAll, 2); }),
                "File 2 does not exist: there are 2 files.");
  check_refused(error_of([&] { share.find(kAll, -1, 0); }),
                "Block -1 does not exist: there are 2 blocks.");
  check_refused(error_of([&] { share.find(kAll, 1, 3); }),
                "Block 2 does not exist: there are 2 blocks.");
  const Share none(source, {3, 3});
  check_refused(error_of([&] { none.find(kAll, 0, 1); }),
                "Block 0 does not exist: there are 0 blocks.");
}

TEST_CASE("share: files are given by a first one and a stride") {
  CHECK(files_of(Numbers{2, 3}) == Files{2, 3});
  for (const Numbers& numbers :
       {Numbers{}, Numbers{1}, Numbers{-1, 2}, Numbers{0, 0}, Numbers{0, 1, 1}}) {
    CHECK(error_of([&] { files_of(numbers); }).kind() == ErrorKind::invalid);
  }
}

TEST_CASE("share: steps are given by a key, files, and where they begin and end") {
  const Steps steps = steps_of(Numbers{-1, 2, 3, 5, 7});
  CHECK(steps.seed == std::numeric_limits<std::uint64_t>::max());
  CHECK(steps.files == Files{2, 3});
  CHECK(steps.at(0) == 5);
  CHECK(steps.at(1) == 6);
  CHECK_FALSE(steps.at(2).has_value());
  CHECK_FALSE(steps.at(-1).has_value());
  for (const Numbers& numbers : {Numbers{}, Numbers{0, 0, 1, 0}, Numbers{0, 0, 1, 0, 0},
                                 Numbers{0, 0, 1, -1, 1}, Numbers{0, 0, 0, 0, 1}}) {
    CHECK(error_of([&] { steps_of(numbers); }).kind() == ErrorKind::invalid);
  }
}

TEST_CASE("share: a kernel keeps its share until the files or the text are others") {
  const TemporaryFolder folder;
  const auto shards = write_shards(folder, {2, 3});
  const std::string text = streamed_spec(shards).encode();
  const std::size_t open = open_source_count();
  {
    ShareHolder shares;
    const auto share = shares.open(text, {0, 2});
    CHECK(shares.open(text, {0, 2}) == share);
    CHECK(shares.open(text, {1, 2}) != share);
    CHECK(shares.open(text, {1, 2})->source() == share->source());
    CHECK(open_source_count() == open + 1);
    SourceSpec other = streamed_spec(shards);
    other.skip_damage = true;
    CHECK(shares.open(other.encode(), {1, 2})->source() != share->source());
    CHECK(open_source_count() == open + 2);
  }
  CHECK(open_source_count() == open);
}

TEST_CASE(
    "share: what is kept open stays open when its kernels go, and is opened anew if it changed") {
  const TemporaryFolder folder;
  const auto shards = write_shards(folder, {2, 3});
  const std::string text = streamed_spec(shards).encode();
  const std::size_t open = open_source_count();
  const auto source_of_an_epoch = [&] { return ShareHolder().open(text, {0, 1}, true)->source(); };
  {
    const SourceKeeper keeper(text);
    CHECK(open_source_count() == open);  // no kernel has used the source
    std::weak_ptr<const Source> first = source_of_an_epoch();
    CHECK(!first.expired());
    CHECK(source_of_an_epoch() == first.lock());
    { const SourceKeeper other(text); }
    CHECK(!first.expired());
    write_shards(folder, {4, 3});
    const std::shared_ptr<const Source> second = source_of_an_epoch();
    CHECK(first.expired());
    CHECK(second->record_count(0) == 4);
    CHECK(open_source_count() == open + 1);
  }
  CHECK(open_source_count() == open);
  const std::shared_ptr<const Source> used = source_of_an_epoch();
  const SourceKeeper late(text);
  CHECK(source_of_an_epoch() == used);
}

namespace {

std::function<void()> while_looked_at;
constexpr StorageTraits kAwayTraits = {true, 4 << 10, std::size_t{1} << 20, 1, 1 << 20};
constexpr Storage kAway = {
    "away",
    kAwayTraits,
    [](const std::string& path, IoMode,
       const StorageOptions&) -> std::shared_ptr<const StoredFile> {
      throw Error(ErrorKind::io, "'" + path + "' is only looked at.");
    },
    [](const std::string&, const StorageOptions&) {
      while_looked_at();
      return FileFacts{100};
    },
    nullptr,
};

}  // namespace

TEST_CASE("share: a source may be let go while it is being opened") {
  add_storage(kAway);
  SourceSpec spec;
  spec.shards.push_back({"away://data", 0, 0});
  const std::string text = spec.encode();
  const std::size_t open = open_source_count();
  auto keeper = std::make_unique<SourceKeeper>(text);
  std::future<void> going;
  bool went_at_once = false;
  while_looked_at = [&] {
    going = std::async(std::launch::async, [&] { keeper.reset(); });
    went_at_once = going.wait_for(std::chrono::seconds(30)) == std::future_status::ready;
  };
  std::shared_ptr<const Source> source = open_source(text, true);
  while_looked_at = nullptr;
  going.wait();
  CHECK(went_at_once);
  CHECK(open_source_count() == open + 1);
  source.reset();
  CHECK(open_source_count() == open);
}
