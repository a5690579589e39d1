#include <doctest/doctest.h>

#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/order/interleaved_order.h"
#include "core/order/permutation.h"
#include "core/order/plan.h"
#include "orders.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

constexpr EncodedKind kKind{"order", "tfOR"};

std::string encoded(const Order& order) {
  Encoder encoder(kKind);
  encode_order(encoder, order);
  return encoder.finish();
}

using Numbers = std::vector<std::int64_t>;

std::shared_ptr<const Order> decoded(const std::string& bytes) {
  Decoder decoder(kKind, bytes);
  std::shared_ptr<const Order> order = decode_order(decoder);
  decoder.finish();
  return order;
}

std::vector<std::int64_t> records_of(const Order& order, std::uint64_t seed, std::uint64_t epoch) {
  std::vector<std::int64_t> records(static_cast<std::size_t>(order.positions()));
  std::iota(records.begin(), records.end(), 0);
  order.of_epoch(seed, epoch)->evaluate(records.data(), records.size(), records.data());
  return records;
}

// The order as docs/permutation.md specifies it: lap after lap, slot after slot.
Numbers in_turns(const Numbers& file_records, std::size_t slots, std::int64_t block_records,
                 std::uint64_t seed = 0, std::uint64_t epoch = 0) {
  struct Slot {
    bool has_file = false;
    std::int64_t next = 0;
    std::int64_t end = 0;
  };
  std::vector<Slot> all(slots);
  Numbers records;
  const auto files = static_cast<std::int64_t>(file_records.size());
  const Permutation shuffled(files, derive_key(KeyPurpose::files, seed, epoch));
  std::int64_t file = 0;
  for (std::size_t turn = 0, ended = 0; ended < slots; ++turn) {
    Slot& slot = all[turn % slots];
    if (!slot.has_file && file < files) {
      const auto at = file_records.begin() + shuffled.at(file++);
      const std::int64_t first = std::accumulate(file_records.begin(), at, std::int64_t{0});
      slot = {true, first, first + *at};
    }
    const bool is_left = slot.has_file;
    for (std::int64_t given = 0; slot.has_file && given < block_records; ++given) {
      if (slot.next < slot.end) {
        records.push_back(slot.next++);
      } else {
        slot.has_file = false;
      }
    }
    ended = is_left ? 0 : ended + 1;
  }
  return records;
}

std::shared_ptr<const LengthBatches> batches_by_length(std::vector<std::uint32_t> lengths,
                                                       std::int64_t tokens) {
  CountedRecords counted;
  counted.records = static_cast<std::int64_t>(lengths.size());
  counted.tables = {std::make_shared<const LengthTable>(std::move(lengths))};
  return std::make_shared<const LengthBatches>(std::move(counted), tokens);
}

std::shared_ptr<const Order> by_length() {
  return batches_by_length({5, 5, 2, 2, 5}, 10);
}

template <class Write>
std::string refusal_of(Write write) {
  Encoder encoder(kKind);
  write(encoder);
  return refusal([&] { decoded(encoder.finish()); });
}

}  // namespace

TEST_CASE("every order comes back from its encoding as it was") {
  MixtureSpec changing = mixed({10, 20, 5}, {3, 2, 1}, 64);
  changing.segments.push_back({2, 30, {0, 1, 7}});
  changing.segments.push_back({4, 21, {400, 1, 7}});
  MixtureSpec spread = mixed({10, 20, 7}, {3, 2, 1}, 36);
  spread.arrangement = Arrangement::spread;
  spread.repeats = false;
  spread.length = 18;
  MixtureSpec units = mixed({10, 20, 7}, {3, 2, 300}, 64);
  units.unit_rows = 4;
  units.sources[2] = choose({5, 5, 2, 9}, 10);
  MixtureSpec batches = mixed({5, 5, 5}, {3, 2, 1}, 12);
  for (auto& source : batches.sources) source = by_length();
  const std::shared_ptr<const Order> orders[] = {
      make_order(100, OrderKind::in_order),
      make_order(100, OrderKind::shuffle),
      make_order(103, OrderKind::block_shuffle, {4, 2, 3}),
      choose({5, 5, 2, 9}, 10, OrderKind::in_order),
      choose({5, 5, 2, 9}, 10, OrderKind::shuffle),
      choose({}, 10),
      make_order(0),
      std::make_shared<const InterleavedOrder>(Numbers{5, 0, 3}, 2, 3),
      std::make_shared<const Weighted>(make_order(7), std::vector<std::int64_t>{3, 0, 1}),
      by_length(),
      std::make_shared<const Mixture>(batches),
      std::make_shared<const Mixture>(changing),
      std::make_shared<const Mixture>(spread),
      std::make_shared<const Mixture>(units),
  };
  for (const auto& order : orders) {
    const std::string bytes = encoded(*order);
    const auto copy = decoded(bytes);
    CAPTURE(copy->describe(3));
    CHECK(copy->describe(3) == order->describe(3));
    CHECK(copy->streams() == order->streams());
    CHECK(copy->unit() == order->unit());
    CHECK(copy->max_rows() == order->max_rows());
    CHECK(records_of(*copy, 3, 4) == records_of(*order, 3, 4));
    CHECK(encoded(*copy) == bytes);
  }
}

TEST_CASE("an order that is not known is refused, not guessed") {
  CHECK(refusal_of([](Encoder& encoder) {
          encoder.number(kOrderVersion);
          encoder.string("sorted");
        }).find("no order has its name") != std::string::npos);
  CHECK(refusal_of([](Encoder& encoder) {
          encoder.number(kOrderVersion + 1);
          encoder.string("exact");
        }).find("Use the tfrfast that made it") != std::string::npos);
  CHECK(refusal_of([](Encoder& encoder) {
          encoder.number(kOrderVersion);
          encoder.string("exact");
          encoder.integer(-1);
        }) == "num_records is -1, but must be from 0 to 4611686018427387904.");
}

TEST_CASE("orders inside orders end somewhere") {
  std::shared_ptr<const Order> order = make_order(3);
  for (int i = 0; i < 40; ++i) {
    order = std::make_shared<const ChosenOrder>(order, std::vector<std::int64_t>{0, 1, 2}, 3);
  }
  const std::string bytes = encoded(*order);
  CHECK_THROWS_WITH_AS(decoded(bytes), doctest::Contains("it is nested too deeply"), Error);
}

TEST_CASE("an order by lengths is found again while it lives, by its whole encoding") {
  const auto order = batches_by_length({5, 5, 2, 2, 5}, 10);
  const std::string other = encoded(*batches_by_length({5, 5, 2, 2, 5}, 11));  // the same batches
  CHECK(decoded(encoded(*order)) == order);
  CHECK_THROWS_WITH_AS(decoded(other), doctest::Contains("an array of another process"), Error);
}

TEST_CASE("files take turns as they do one record after the other") {
  const Numbers few{4, 0, 3, 1, 0, 0, 9, 2, 2, 2};
  Numbers many;
  for (std::int64_t i = 0; i < 200; ++i) many.push_back(i * i % 13 == 5 ? 0 : i * 7 % 31);
  for (const Numbers& file_records : {few, many, Numbers{0, 0}, Numbers{}, Numbers{6}}) {
    for (const std::int64_t slots : {1, 2, 3, 7, 100, 5000})
      for (const std::int64_t block : {std::int64_t{1}, std::int64_t{2}, std::int64_t{3},
                                       std::int64_t{16}, kMaxPermutationSize}) {
        CAPTURE(slots);
        CAPTURE(block);
        const InterleavedOrder order(file_records, slots, block);
        const Numbers expected = in_turns(file_records, static_cast<std::size_t>(slots), block);
        CHECK(records_of(order, 0, 0) == expected);
        // In any order, far apart.
        const auto epoch = order.of_epoch(0, 0);
        const auto count = static_cast<std::int64_t>(expected.size());
        Numbers positions;
        for (std::int64_t i = 0; i < count; ++i) positions.push_back(i * 7919 % count);
        Numbers found(positions.size());
        epoch->evaluate(positions.data(), positions.size(), found.data());
        for (std::size_t i = 0; i < found.size(); ++i) {
          REQUIRE(found[i] == expected[static_cast<std::size_t>(positions[i])]);
        }
      }
  }
}

TEST_CASE("files take turns in another order for each seed and epoch") {
  const InterleavedOrder order({4, 0, 3, 1, 9}, 2, 2);
  std::set<Numbers> seen;
  for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
    const Numbers expected = in_turns({4, 0, 3, 1, 9}, 2, 2, 7, epoch);
    CHECK(records_of(order, 7, epoch) == expected);
    seen.insert(expected);
  }
  CHECK(seen.size() > 10);
}

TEST_CASE("files that take turns can be others, but not parts of them") {
  const InterleavedOrder order({5, 0, 3}, 2);
  CHECK(order.over_files({0, 5, 5, 8}, 8) == nullptr);
  const auto other = order.over_files({0, 2, 8}, 8);
  REQUIRE(other != nullptr);
  CHECK(records_of(*other, 0, 0) == in_turns({2, 6}, 2, 1));
  CHECK_THROWS_AS(order.over_files({0, 5, 5, 8}, 7), Error);
  CHECK_THROWS_AS(order.over(3), Error);
  CHECK_THROWS_AS(InterleavedOrder({5, -1}, 2), Error);
  CHECK_THROWS_AS(InterleavedOrder({5}, 0), Error);
  CHECK_THROWS_AS(InterleavedOrder({5}, 1, 0), Error);
  CHECK_THROWS_AS(InterleavedOrder({std::int64_t{1} << 62, std::int64_t{1} << 62}, 2), Error);
}

TEST_CASE("a plan comes back from its encoding as it was") {
  for (const Remainder remainder : {Remainder::keep, Remainder::drop, Remainder::pad}) {
    PlanOptions options;
    options.order = choose({4, 4, 1, 0, 2, 3, 3}, 5, OrderKind::block_shuffle);
    options.seed = ~std::uint64_t{0};
    options.batch_size = 2;
    options.rank = 1;
    options.world = 3;
    options.remainder = remainder;
    options.start = 1;
    const Plan plan(options);
    const Plan copy = Plan::decode(plan.encode());
    CHECK(copy.encode() == plan.encode());
    CHECK(copy.order_description() == plan.order_description());
    REQUIRE(copy.steps() == plan.steps());
    for (std::int64_t step = 0; step < plan.steps(); ++step) {
      PlannedBatch batch, copied;
      plan.batch(*plan.of_epoch(7), step, batch);
      copy.batch(*copy.of_epoch(7), step, copied);
      CHECK(batch.records == copied.records);
    }
  }
  CHECK_THROWS_WITH_AS(Plan::decode("tfrfast"), doctest::Contains("This is not a plan"), Error);
}
