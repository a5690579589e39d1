#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/order/sequence.h"
#include "orders.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

using Numbers = std::vector<std::int64_t>;

// A sequence of a source of `records` records.
Sequence everything(std::int64_t records, std::int64_t batch_rows,
                    OrderKind kind = OrderKind::in_order) {
  Sequence sequence;
  sequence.records = {0, 1, records};
  sequence.order = make_order(records, kind, {2, 2, 2});
  sequence.positions = {0, 1, records};
  sequence.batch_rows = batch_rows;
  return sequence;
}

Numbers all_of(const Sequence& sequence, std::uint64_t seed = 0) {
  Numbers all;
  for (std::int64_t step = 0; step < sequence.batch_count(); ++step) {
    const Numbers batch = sequence.batch(seed, step);
    all.insert(all.end(), batch.begin(), batch.end());
  }
  return all;
}

std::string refusal_of(void (*change)(Sequence&)) {
  Sequence sequence = everything(10, 3);
  change(sequence);
  return refusal([&] { Sequence::decode(sequence.encode()); });
}

}  // namespace

TEST_CASE("batches run on over the ends of epochs, or end with them") {
  Sequence sequence = everything(5, 3);
  sequence.epochs = 2;
  CHECK(sequence.batch_count() == 4);
  CHECK(sequence.batch(0, 1) == Numbers{3, 4, 0});
  CHECK(sequence.batch(0, 3) == Numbers{4});
  CHECK(sequence.batch(0, 4).empty());
  sequence.drop_remainder = true;
  CHECK(sequence.batch_count() == 3);
  CHECK(sequence.batch(0, 3).empty());
  sequence.batch_ends_with_epoch = true;
  CHECK(sequence.batch_count() == 2);
  CHECK(sequence.batch(0, 1) == Numbers{0, 1, 2});
  sequence.drop_remainder = false;
  CHECK(sequence.batch_count() == 4);
  CHECK(sequence.batch(0, 1) == Numbers{3, 4});
  sequence.epochs = -1;
  CHECK(sequence.batch_count() == kEndless);
}

TEST_CASE("what has more rows than can be counted has the batches that it says") {
  Sequence sequence = everything(4, 9);
  sequence.epochs = 0x6500010000000001;
  for (const bool drop : {false, true}) {
    sequence.drop_remainder = drop;
    const std::int64_t batches = sequence.batch_count();
    CHECK(batches < kEndless);
    CHECK(sequence.batch(0, batches - 1).size() == (drop ? 9 : 1));
    CHECK(sequence.batch(0, batches).empty());
  }
  sequence.epochs = -1;
  CHECK(sequence.batch_count() == kEndless);
  CHECK(sequence.batch(0, kEndless - 1).size() == 9);
}

TEST_CASE("what is taken before a shuffle is shuffled, and what is taken after it is not") {
  Sequence sequence = everything(10, 4, OrderKind::shuffle);
  sequence.records = {1, 2, 5};
  sequence.order = make_order(5);
  sequence.positions = {0, 1, 5};
  Numbers odd = all_of(sequence, 3);
  const Numbers in_order = odd;
  std::sort(odd.begin(), odd.end());
  CHECK(odd == Numbers{1, 3, 5, 7, 9});
  sequence.positions = {1, 3, 2};
  CHECK(all_of(sequence, 3) == Numbers{in_order[1], in_order[4]});
}

TEST_CASE("each epoch has an order of its own, unless it is told to keep one") {
  Sequence sequence = everything(100, 100, OrderKind::shuffle);
  sequence.epochs = 2;
  CHECK(sequence.batch(1, 0) != sequence.batch(1, 1));
  sequence.reshuffles = false;
  CHECK(sequence.batch(1, 0) == sequence.batch(1, 1));
  CHECK(sequence.batch(1, 0) != sequence.batch(2, 0));
}

TEST_CASE("the same calls on another source") {
  Sequence sequence = everything(100, 7, OrderKind::block_shuffle);
  sequence.records = {10, 3, 20};
  sequence.order = make_order(20, OrderKind::block_shuffle, {2, 2, 2});
  sequence.positions = {0, 1, 15};
  const Sequence smaller = sequence.over({0, 17});
  CHECK(smaller.records.count == 3);
  CHECK(smaller.positions.count == 3);
  Numbers numbers = all_of(smaller);
  std::sort(numbers.begin(), numbers.end());
  CHECK(numbers == Numbers{10, 13, 16});
  CHECK(sequence.over({0, 5}).batch_count() == 0);
  CHECK(all_of(sequence.over({0, 1000})) == all_of(sequence));
}

TEST_CASE("a sequence comes back from its encoding as it was") {
  for (const OrderKind kind : kOrderKinds) {
    Sequence sequence = everything(40, 7, kind);
    sequence.epochs = 3;
    const Sequence copy = Sequence::decode(sequence.encode());
    CHECK(copy.encode() == sequence.encode());
    CHECK(all_of(copy, 5) == all_of(sequence, 5));
  }
}

TEST_CASE("a sequence of numbers that do not exist is refused") {
  Sequence::decode(everything(10, 3).encode());
  CHECK(holds(refusal_of([](Sequence& s) { s.positions.count = 11; }), "do not exist"));
  CHECK(holds(refusal_of([](Sequence& s) { s.records = {0, 0, 10}; }), "do not exist"));
  CHECK(holds(refusal_of([](Sequence& s) { s.records.stride = INT64_MAX; }), "do not exist"));
  CHECK(holds(refusal_of([](Sequence& s) { s.records.count = 9; }), "another number of records"));
  CHECK(refusal_of([](Sequence& s) { s.epochs = -2; }).find("epochs is -2") == 0);
  CHECK(refusal_of([](Sequence& s) { s.batch_rows = -1; }).find("batch_rows is -1") == 0);
}
