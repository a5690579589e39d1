#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "../core/announced_bytes.h"
#include "../core/orders.h"
#include "../core/shard_fixture.h"
#include "core/base/thread.h"
#include "core/storage/storage.h"
#include "core/storage/storage_options.h"
#include "source_fixture.h"
#include "tensorflow/file_order.h"
#include "tensorflow/orders.h"
#include "tensorflow/requests.h"

using namespace tfrfast;
using namespace tfrfast::tensorflow;
using namespace tfrfast::testing;

namespace {

using Numbers = std::vector<std::int64_t>;

constexpr std::int64_t kRecords = 5000;
constexpr std::size_t kFrameBytes = 100 + kFrameOverhead;
constexpr std::int64_t kRows = 8;
// This many rows are announced before they are needed.
constexpr std::int64_t kAhead = 1024 / kRows;

// One remote object in memory.
struct Ledger {
  std::string bytes;
  AnnouncedBytes announced;
  std::optional<std::uint64_t> fails_at;  // a read of that byte

  static Ledger& instance() {
    static auto* const ledger = new Ledger;
    return *ledger;
  }
  // The number of announced and unread records. A record counts once for each announcement.
  std::int64_t records_announced() const { return announced.awaited(kFrameBytes); }
};

FileFacts facts_of_it(const std::string&, const StorageOptions&) {
  return {Ledger::instance().bytes.size(), 1, {{1, 0, 0}}, true, {}};
}

constexpr StorageTraits kLedgerTraits = {true, 1000, 4000, 8, std::uint64_t{256} << 20};

class LedgerFile final : public StoredFile {
 public:
  explicit LedgerFile(const std::string& path)
      : StoredFile(path, facts_of_it(path, {}), kLedgerTraits) {}
  using StoredFile::read;
  void read(std::span<const ReadRange> ranges) const override {
    Ledger& ledger = Ledger::instance();
    for (const ReadRange& each : ranges) {
      if (ledger.fails_at && *ledger.fails_at - each.offset < each.bytes) {
        throw Error(ErrorKind::io, "It fails.",
                    {path(), {}, static_cast<std::int64_t>(*ledger.fails_at)});
      }
      if (each.bytes > 0) std::memcpy(each.out, ledger.bytes.data() + each.offset, each.bytes);
      ledger.announced.read(each.offset, each.bytes);
    }
  }
  std::unique_ptr<Announcement> announce(std::span<const FileRange> ranges,
                                         Reads reads) const noexcept override {
    return Ledger::instance().announced.announce(ranges, reads);
  }
};

constexpr Storage kLedger = {
    "ledger",
    kLedgerTraits,
    [](const std::string& path, IoMode, const StorageOptions&)
        -> std::shared_ptr<const StoredFile> { return std::make_shared<LedgerFile>(path); },
    facts_of_it,
};

struct Fixture {
  explicit Fixture(std::int64_t epochs = 1) {
    static const bool once = (add_storage(kLedger), true);
    (void)once;
    static const TemporaryFolder folder;
    static const std::string bytes =
        TestShard(folder / "shard").write_records(kRecords, 100).bytes();
    ledger.bytes = bytes;
    ledger.fails_at.reset();
    SourceSpec spec;
    spec.planned = true;
    spec.index_use = IndexUse::memory;
    spec.shards.push_back({"ledger://shard", bytes.size(), kRecords});
    begin_again();
    source = std::make_shared<const Source>(std::move(spec));
    begin_again();  // opening has read the beginning of the object
    sequence.records = sequence.positions = {0, 1, kRecords};
    sequence.order = make_order(kRecords);
    sequence.batch_rows = kRows;
    sequence.epochs = epochs;
    share =
        std::make_shared<const Share>(source, Files{}, std::make_shared<const Sequence>(sequence));
  }

  void begin_again() const { ledger.announced.reset(ledger.bytes.size()); }
  Course course(std::uint64_t seed = 1) const {
    return {source, "seed " + std::to_string(seed), share->batch_count(),
            [this, seed](std::int64_t step) { return share->records_of_batch(seed, step); },
            together_bytes};
  }
  bool come_to(StepsAhead& place, std::int64_t step, std::uint64_t seed = 1) const {
    return place.come_to(source, step, [&] { return course(seed); });
  }
  void read(StepsAhead& place, std::int64_t step, std::uint64_t seed = 1) const {
    REQUIRE(come_to(place, step, seed));
    CHECK(read_records(share->records_of_batch(seed, step)).error().empty());
  }

  std::vector<Row> rows_of(const Numbers& records) const {
    std::vector<Row> rows(records.size());
    source->records()->reader()->locate(records, rows.data());
    return rows;
  }
  ReadBatch read_records(const Numbers& records) const {
    return tensorflow::testing::read_rows(source, rows_of(records));
  }

  Ledger& ledger = Ledger::instance();
  std::uint64_t together_bytes = 0;  // each step is announced separately
  Sequence sequence;
  std::shared_ptr<const Source> source;
  std::shared_ptr<const Share> share;
};

struct TwoEpochs : Fixture {
  TwoEpochs() : Fixture(2) {}
};

// The first records, as a batch.
struct OneBatch : Fixture {
  OneBatch() {
    batch.source = source;
    batch.records.resize(4000);
    std::iota(batch.records.begin(), batch.records.end(), 0);
    batch.rows = rows_of(batch.records);
  }
  BatchRows batch;
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "steps ahead: a step and those after it are announced, up to a bound") {
  StepsAhead place;
  read(place, 0);
  CHECK(ledger.records_announced() == kAhead * kRows);
  read(place, 1);
  CHECK(ledger.records_announced() == kAhead * kRows);
  CHECK(ledger.announced.read_unannounced() == 0);
  CHECK(ledger.announced.most_asked() == 1);
}

TEST_CASE_FIXTURE(Fixture, "steps ahead: steps that share requests are announced together") {
  together_bytes = kTogetherBytes;
  StepsAhead place;
  for (std::int64_t step = 0; step < share->batch_count(); ++step) {
    read(place, step);
    CHECK(ledger.records_announced() == kRecords - (step + 1) * kRows);
  }
  CHECK(ledger.announced.read_unannounced() == 0);
  CHECK(ledger.announced.most_asked() == 1);
}

TEST_CASE_FIXTURE(TwoEpochs, "steps ahead: the next epoch's first steps are announced in time") {
  StepsAhead place;
  const std::int64_t end = kRecords / kRows;
  for (std::int64_t step = 0; step < end; ++step) read(place, step);
  CHECK(ledger.records_announced() == kAhead * kRows);
  for (std::int64_t step = end; step < 2 * end; ++step) read(place, step);
  CHECK(ledger.records_announced() == 0);
  CHECK(ledger.announced.read_unannounced() == 0);
  CHECK_FALSE(come_to(place, 2 * end));
  CHECK_FALSE(come_to(place, -1));
}

TEST_CASE_FIXTURE(Fixture, "steps ahead: what was not taken is withdrawn with the kernel") {
  std::optional<StepsAhead> place(std::in_place);
  read(*place, 0);
  read(*place, 2);
  CHECK(ledger.records_announced() == (kAhead + 1) * kRows);
  place.reset();
  CHECK(ledger.records_announced() == 0);
}

TEST_CASE_FIXTURE(Fixture, "steps ahead: calls may come out of order") {
  StepsAhead place;
  for (const std::int64_t step : {3, 0, 2, 1, 9, 8, 7, 4, 6, 5}) read(place, step);
  CHECK(ledger.announced.most_asked() == 1);
  CHECK(ledger.announced.read_unannounced() == 0);
  CHECK(ledger.records_announced() == kAhead * kRows);
}

TEST_CASE_FIXTURE(Fixture, "steps ahead: many threads announce each step once") {
  constexpr std::int64_t kThreads = 8;
  std::vector<std::thread> threads;
  std::atomic<std::int64_t> next{0};
  std::optional<StepsAhead> place(std::in_place);
  for (std::int64_t thread = 0; thread < kThreads; ++thread) {
    threads.push_back(start_thread([&] {
      for (std::int64_t step = next++; step < 600; step = next++) {
        read(*place, step);
      }
    }));
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(ledger.announced.read_unannounced() == 0);
  place.reset();
  CHECK(ledger.records_announced() == 0);
}

TEST_CASE_FIXTURE(Fixture, "steps ahead: iterations of one order do not disturb each other") {
  StepsAhead one, two;
  for (std::int64_t step = 0; step < 20; ++step) {
    read(one, step);
    read(two, step);
  }
  CHECK(ledger.announced.read_unannounced() == 0);
  CHECK(ledger.records_announced() == 2 * kAhead * kRows);
  // Iterations may have one kernel and different orders.
  for (std::int64_t step = 20; step < 40; ++step) {
    read(one, step);
    read(one, step);
    read(one, step, 2);
  }
  CHECK(ledger.announced.read_unannounced() == 0);
}

TEST_CASE_FIXTURE(Fixture, "steps ahead: a place that was left is withdrawn after some calls") {
  StepsAhead place;
  for (std::int64_t step = 0; step < 10; ++step) read(place, step);
  for (std::int64_t step = 400; step < 470; ++step) read(place, step);
  CHECK(ledger.records_announced() == kAhead * kRows);
  // An earlier step, as after the restoration of a checkpoint.
  for (std::int64_t step = 5; step < 80; ++step) read(place, step);
  CHECK(ledger.records_announced() == kAhead * kRows);
  CHECK(ledger.announced.read_unannounced() == 0);
}

TEST_CASE_FIXTURE(Fixture,
                  "steps ahead: steps that others read are withdrawn, and fewer announced") {
  std::optional<StepsAhead> place(std::in_place);
  for (std::int64_t piece = 0; piece < 600; piece += 128) {
    for (std::int64_t step = piece; step < piece + 64; ++step) read(*place, step);
  }
  CHECK(ledger.announced.read_unannounced() == 0);
  CHECK(ledger.records_announced() < kAhead * kRows);
  place.reset();
  CHECK(ledger.records_announced() == 0);
}

TEST_CASE_FIXTURE(Fixture, "steps ahead: what a read that failed has left stays until it is over") {
  std::optional<StepsAhead> place(std::in_place);
  read(*place, 0);
  const Numbers second = share->records_of_batch(1, 1);
  ledger.fails_at = static_cast<std::uint64_t>(second[0]) * kFrameBytes + 7;
  REQUIRE(come_to(*place, 1));
  CHECK_FALSE(read_records(second).error().empty());
  ledger.fails_at.reset();
  for (std::int64_t step = 2; step < 150; ++step) read(*place, step);
  CHECK(ledger.records_announced() == kAhead * kRows);
  CHECK(ledger.announced.read_unannounced() == 0);
  place.reset();
  CHECK(ledger.records_announced() == 0);
}

TEST_CASE_FIXTURE(OneBatch, "steps ahead: records after one that cannot be decoded are withdrawn") {
  FeatureSpec missing;
  missing.name = "missing";
  const Decoders decoders(FeatureSchema({missing}));
  CHECK_THROWS_AS(read_batch(batch, &decoders), Error);
  CHECK(ledger.records_announced() == 0);
}

TEST_CASE_FIXTURE(OneBatch, "steps ahead: what a storage that failed has not given is left out") {
  ledger.fails_at = 100 * kFrameBytes + 7;
  const ReadBatch some = read_batch(batch, nullptr);
  CHECK(some.error().find("more error") == std::string::npos);
  CHECK(some.rows.size() == 100);
  std::size_t row = 0;
  for (const std::string& payload : tensorflow::testing::payloads_of(some)) {
    const char* const stored = ledger.bytes.data() + batch.rows[row++].frame.offset + kHeaderBytes;
    REQUIRE(payload.size() == 100);
    CHECK(std::memcmp(payload.data(), stored, payload.size()) == 0);
  }
  CHECK(ledger.records_announced() == 0);
  const Decoders decoders{FeatureSchema(std::vector<FeatureSpec>{})};
  CHECK_THROWS_AS(read_batch(batch, &decoders), Error);
  CHECK(ledger.records_announced() == 0);
}

TEST_CASE_FIXTURE(Fixture, "steps ahead: in file order, what is announced is read once") {
  SourceSpec spec;
  spec.index_use = IndexUse::memory;
  spec.shards.push_back({"ledger://shard", 0, 0});
  const std::string text = spec.encode();
  const Cursor beginning = [&] {
    Cursor cursor;
    cursor.slots.resize(1);
    cursor.ahead = {{0, 1, 1}, {Cursor::kEnd, 1, 1}};
    return cursor;
  }();
  std::optional<Requests> finding(std::in_place), reading(std::in_place);
  const auto found = [&] {
    ledger.fails_at.reset();
    const auto streamed = finding->open(text, true);
    std::vector<Row> rows;
    Cursor cursor = beginning;
    FileWalk(*streamed, tfrfast::tensorflow::testing::kEverything, cursor)
        .pass(kRecords, 1 << 30, &rows);
    begin_again();
    streamed->open(0)->announce(0, ledger.bytes.size());
    return rows;
  };
  const auto read = [&](std::span<const Row> rows) {
    return tensorflow::testing::read_rows(reading->open(text), {rows.begin(), rows.end()}).error();
  };
  std::vector<Row> rows = found();
  CHECK(ledger.records_announced() == kRecords);
  CHECK(read(rows).empty());
  CHECK(ledger.records_announced() == 0);
  CHECK(ledger.announced.read_unannounced() == 0);
  // Again, without a new beginning: another iterator of the dataset.
  CHECK(read(rows).empty());
  CHECK(ledger.records_announced() == 0);
  CHECK(ledger.announced.read_unannounced() == 0);

  rows = found();
  CHECK(read(std::span(rows).first(10)).empty());
  CHECK(ledger.records_announced() == kRecords - 10);
  const auto held = reading->open(text);  // opening a source reads nothing
  finding.reset();
  CHECK(ledger.records_announced() == 0);
}
