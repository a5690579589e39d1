#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "fake_c_api.h"
#include "source_fixture.h"
#include "tensorflow/addresses.h"
#include "tensorflow/reading_ops.h"
#include "tensorflow/share.h"

using namespace tfrfast;
using namespace tfrfast::tensorflow;
using namespace tfrfast::testing;
using namespace tfrfast::tensorflow::testing;

namespace {

using Numbers = std::vector<std::int64_t>;
using Strings = std::vector<std::string>;

constexpr Progression kAll{0, 1, 1 << 20};
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

}  // namespace

TEST_CASE("addresses: what is found in one process is read in another") {
  const TemporaryFolder folder;
  const auto shards = write_shards(folder, {2, 0, 3}, 20);
  const auto source = streamed_source(shards);
  const Share share(source, {});
  const Found found = share.find(kAll, 0, share.block_count());
  FakeCall fake;
  run_kernel(fake.context(), [&](KernelCall& call) { write_found(call, 0, source.get(), found); });
  REQUIRE(fake.code() == Code::ok);
  const Numbers addresses = fake.integers(0);
  CHECK(addresses == Numbers{0, 0, 0, 20, 0, 1, 36, 20, 2, 0, 0, 20, 2, 1, 36, 20, 2, 2, 72, 20});
  CHECK(fake.strings(1) == Strings{""});
  CHECK(fake.integers(2).empty());

  const auto elsewhere = streamed_source(shards);
  const Records records = elsewhere->read(rows_at(*elsewhere, addresses));
  CHECK(payloads_of(records) == Strings{shards[0].record(0), shards[0].record(1),
                                        shards[2].record(0), shards[2].record(1),
                                        shards[2].record(2)});
}

TEST_CASE("addresses: damage parts those before it from those after it") {
  const TemporaryFolder folder;
  auto shards = write_shards(folder, {3}, 20);
  shards[0].flip_bit(shards[0].offset(1));
  const auto source = streamed_source(shards);
  const Found found = Share(source, {}).find(kAll, 0, 1);
  FakeCall fake;
  run_kernel(fake.context(), [&](KernelCall& call) { write_found(call, 0, source.get(), found); });
  CHECK(fake.integers(0) == Numbers{0, 0, 0, 20});
  CHECK(holds(fake.strings(1)[0], shards[0].path()));
  CHECK(fake.integers(2) == Numbers{0, 1, 72, 20});
}

TEST_CASE("addresses: any numbers are read, or refused with an error that says why") {
  const TemporaryFolder folder;
  const auto shards = write_shards(folder, {2}, 20);  // 72 bytes
  const auto source = streamed_source(shards);
  const auto kind_of = [&](const Numbers& address) {
    return error_of([&] { rows_at(*source, address); }).kind();
  };
  CHECK(rows_at(*source, Numbers{}).empty());
  CHECK(rows_at(*source, Numbers{kNoRecord, 0, 0, 0}).empty());
  CHECK(rows_at(*source, Numbers{0, 7, 36, 20}).size() == 1);
  for (const Numbers& address :
       {Numbers{0, 0, 0}, Numbers{1, 0, 0, 20}, Numbers{-2, 0, 0, 20}, Numbers{kMax, 0, 0, 20},
        Numbers{0, -1, 0, 20}, Numbers{0, 0, -1, 20}, Numbers{0, 0, 0, -1}, Numbers{0, 0, kMax, 1},
        Numbers{0, 0, 1, kMax}, Numbers{0, 0, kMax - 1, 0}}) {
    CHECK(kind_of(address) == ErrorKind::invalid);
  }
  for (const Numbers& address : {Numbers{0, 0, 37, 20}, Numbers{0, 0, 36, 21}, Numbers{0, 0, 72, 0},
                                 Numbers{0, 0, 0, kMax - 16}, Numbers{0, 0, kMax - 16, 0}}) {
    CHECK(kind_of(address) == ErrorKind::stale_index);
  }
  // At a place without a frame, the bytes are not a header.
  const Records wrong = source->read(rows_at(*source, Numbers{0, 0, 5, 20}));
  CHECK(payloads_of(wrong).empty());
  CHECK(holds(wrong.error(), shards[0].path()));
  const Records short_one = source->read(rows_at(*source, Numbers{0, 0, 0, 19}));
  CHECK(payloads_of(short_one).empty());
  CHECK(short_one.error() != "");
}

TEST_CASE("addresses: a planned source has none") {
  const TemporaryFolder folder;
  const auto source = planned_source(write_shards(folder, {2}));
  CHECK(error_of([&] { rows_at(*source, Numbers{0, 0, 0, 10}); }).kind() == ErrorKind::invalid);
}

TEST_CASE("addresses: a batch that has to be full fails with its error, any other does not") {
  fail_if(false, "15 Bad.");
  fail_if(true, "");
  CHECK_THROWS_AS(fail_if(true, "15 Bad."), KernelFailure);
}
