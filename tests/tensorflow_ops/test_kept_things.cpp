#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

#include "../core/orders.h"
#include "../core/shard_fixture.h"
#include "core/base/thread.h"
#include "core/order/sequence.h"
#include "tensorflow/orders.h"

using namespace tfrfast;
using namespace tfrfast::tensorflow;
using namespace tfrfast::testing;

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
