#include "tensorflow/file_order.h"

#include <doctest/doctest.h>

#include <limits>
#include <numeric>
#include <vector>

#include "fake_c_api.h"
#include "source_fixture.h"
#include "tensorflow/reading_ops.h"
#include "tensorflow/requests.h"
#include "tensorflow/source.h"

using namespace tfrfast;
using namespace tfrfast::tensorflow;
using namespace tfrfast::testing;
using namespace tfrfast::tensorflow::testing;

namespace {

using Numbers = std::vector<std::int64_t>;
using Strings = std::vector<std::string>;
using Counts = std::vector<std::size_t>;

Numbers numbers_of(const Wanted& wanted) {
  return {wanted.records.first, wanted.records.stride, wanted.records.count, wanted.rows,
          wanted.group,         wanted.slots,          wanted.block,         wanted.is_full,
          wanted.ends_short,    wanted.repeats};
}

// Walks as a graph does, and reads every batch in other holders. An error becomes a batch of "!".
std::vector<Strings> batches_of(const std::string& source, const Wanted& wanted,
                                const std::vector<Numbers>& told) {
  std::vector<Strings> batches;
  const Numbers rules = numbers_of(wanted);
  Requests walking, reading;
  Numbers state;
  for (std::size_t step = 0; step < 1000; ++step) {
    FakeCall walk;
    walk.add_strings({source}).add_integers(rules).add_integers(state).add_integers(
        told[std::min(step, told.size() - 1)]);
    run_kernel(walk.context(), [&](KernelCall& call) { compute_walk(walking, call); });
    REQUIRE(walk.message() == "");
    state = walk.integers(0);
    const Numbers found = walk.integers(1);
    const std::vector<std::int64_t> shape = walk.output(1).dims;
    if (shape[1] == 0) return batches;
    const Strings errors = walk.strings(2);
    for (std::size_t i = 0; i < errors.size(); ++i) {
      if (found[i * static_cast<std::size_t>(shape[2])] < 0) continue;
      std::vector<TString> texts(errors.size());
      for (std::size_t j = 0; j < errors.size(); ++j) {
        texts[j].write_copy(errors[j].data(), errors[j].size());
      }
      BatchRows rows = reading.find(source, "", found, texts).rows(static_cast<std::int64_t>(i));
      for (const TString& text : texts) drop_string(text);
      if (!rows.error.empty() && rows.rows.empty()) {
        batches.push_back({"!"});
        continue;
      }
      const bool fails = !std::exchange(rows.error, "").empty();
      batches.push_back(payloads_of(read_batch(rows, nullptr)));
      if (fails) batches.push_back({"!"});
    }
  }
  FAIL("The walk does not end.");
  return batches;
}

Strings joined(const std::vector<Strings>& batches) {
  Strings all;
  for (const Strings& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
  return all;
}

std::vector<Numbers> one_by_one(std::size_t files) {
  std::vector<Numbers> told;
  for (std::size_t i = 0; i < files; ++i) told.push_back({static_cast<std::int64_t>(i), 0});
  told.push_back({Cursor::kEnd, 0});
  return told;
}

std::string spec_of(const std::vector<TestShard>& shards, IndexUse use = IndexUse::memory) {
  SourceSpec spec = streamed_spec(shards);
  spec.index_use = use;
  return spec.encode();
}

// The records that one of several processes reads.
Strings share_of(const std::vector<TestShard>& shards, std::int64_t first, std::int64_t stride) {
  const bool by_file = stride <= static_cast<std::int64_t>(shards.size());
  Strings all;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    for (std::size_t j = 0; j < shards[i].records(); ++j) {
      if (static_cast<std::int64_t>(by_file ? i : j) % stride == first) {
        all.push_back(shards[i].record(j));
      }
    }
  }
  return all;
}

// The records in the order of files that take turns.
Strings in_turns(const std::vector<TestShard>& shards, std::size_t slots, std::size_t block) {
  Strings all;
  std::vector<std::ptrdiff_t> files(slots, -1);
  std::vector<std::size_t> passed(slots, 0);
  std::size_t next = 0;
  for (std::size_t slot = 0;; slot = (slot + 1) % slots) {
    if (files[slot] < 0) {
      if (next == shards.size()) {
        if (std::all_of(files.begin(), files.end(), [](auto file) { return file < 0; })) return all;
        continue;
      }
      files[slot] = static_cast<std::ptrdiff_t>(next++);
      passed[slot] = 0;
    }
    const TestShard& shard = shards[static_cast<std::size_t>(files[slot])];
    for (std::size_t i = 0; i < block; ++i) {
      if (passed[slot] == shard.records()) {
        files[slot] = -1;
        break;
      }
      all.push_back(shard.record(passed[slot]++));
    }
  }
}

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

}  // namespace

TEST_CASE("file order: take, skip and shard choose among the records of a share") {
  const TemporaryFolder folder;
  for (const std::size_t bytes : {std::size_t{10}, std::size_t{600} << 10}) {
    const auto shards = write_shards(folder, {5, 0, 6, 1}, bytes);
    for (const Numbers& told : {Numbers{0, 1}, Numbers{1, 2}, Numbers{1, 5}, Numbers{0, kMost}}) {
      const Strings mine = share_of(shards, told[0], told[1]);
      for (const Progression& records :
           {Progression{0, 1, kEndless}, Progression{0, 1, 2}, Progression{2, 1, 9},
            Progression{1, 2, 3}, Progression{3, 4, 2}, Progression{5, 1, 1},
            Progression{7, 1, 100}, Progression{0, 1, 0}, Progression{1, kMost - 1, 1}}) {
        for (const std::int64_t rows : {0, 1, 4}) {
          CAPTURE(bytes);
          CAPTURE(told);
          CAPTURE(records.first);
          CAPTURE(records.stride);
          CAPTURE(rows);
          Strings expected;
          for (std::int64_t i = 0; i < std::min<std::int64_t>(records.count, 20); ++i) {
            const __int128 at = records.first + static_cast<__int128>(records.stride) * i;
            if (at >= static_cast<std::int64_t>(mine.size())) break;
            expected.push_back(mine[static_cast<std::size_t>(at)]);
          }
          const auto batches =
              batches_of(spec_of(shards), {records, rows, rows == 1 ? 3 : 1}, {told, {-2, 0}});
          CHECK(joined(batches) == expected);
          for (std::size_t i = 0; rows > 0 && i + 1 < batches.size(); ++i) {
            CHECK(batches[i].size() == static_cast<std::size_t>(rows));
          }
        }
      }
    }
  }
}

TEST_CASE("file order: files take turns, and the next file replaces one that has ended") {
  const TemporaryFolder folder;
  const auto shards = write_shards(folder, {5, 0, 3, 1, 0, 7, 2});
  for (const std::int64_t slots : {1, 2, 3, 9}) {
    for (const std::int64_t block : {1, 2, 4}) {
      CAPTURE(slots);
      CAPTURE(block);
      const Strings expected = in_turns(shards, static_cast<std::size_t>(slots),
                                        static_cast<std::size_t>(slots == 1 ? 100 : block));
      const Wanted all{{0, 1, kEndless}, 4, 2, slots, block};
      CHECK(joined(batches_of(spec_of(shards), all, one_by_one(7))) == expected);
      const Wanted part{{3, 2, 4}, 3, 1, slots, block};
      CHECK(joined(batches_of(spec_of(shards), part, one_by_one(7))) ==
            Strings{expected[3], expected[5], expected[7], expected[9]});
    }
  }
}

TEST_CASE("file order: batches go on from epoch to epoch, and repeating nothing ends") {
  const TemporaryFolder folder;
  const auto shards = write_shards(folder, {2, 1});
  Wanted wanted{{0, 1, kEndless}, 2};
  wanted.repeats = true;
  const Strings all = share_of(shards, 0, 1);
  const std::vector<Numbers> twice = {{0, 0}, {1, 0}, {-1, 0}, {0, 0}, {1, 0}, {-1, 0}, {-2, 0}};
  CHECK(batches_of(spec_of(shards), wanted, twice) ==
        std::vector<Strings>{{all[0], all[1]}, {all[2], all[0]}, {all[1], all[2]}});
  wanted.records = {2, 1, 1};
  CHECK(joined(batches_of(spec_of(shards), wanted, twice)) == Strings{all[2], all[2]});
  wanted.records = {3, 1, 1};
  CHECK(batches_of(spec_of(shards), wanted, twice).empty());
}

TEST_CASE("file order: damage belongs to those who read on to it, after the records before it") {
  const TemporaryFolder folder;
  auto shards = write_shards(folder, {5, 2});
  shards[0].flip_bit(shards[0].offset(3));
  const std::string spec = spec_of(shards);
  const Strings all = share_of(shards, 0, 1);
  const auto read = [&](Wanted wanted) { return batches_of(spec, wanted, one_by_one(2)); };
  using Batches = std::vector<Strings>;
  CHECK(read({{0, 1, kEndless}}) ==
        Batches{{all[0], all[1], all[2]}, {"!"}, {all[4]}, {all[5], all[6]}});
  CHECK(read({{0, 1, 3}}) == Batches{{all[0], all[1], all[2]}});
  CHECK(joined(read({{4, 1, 9}})) == Strings{all[5], all[6]});
  Wanted pairs{{0, 1, kEndless}, 2};
  CHECK(read(pairs) == Batches{{all[0], all[1]}, {"!"}, {all[4], all[5]}, {all[6]}});
  pairs.ends_short = true;
  CHECK(read(pairs) == Batches{{all[0], all[1]}, {all[2]}, {"!"}, {all[4], all[5]}, {all[6]}});
  std::filesystem::remove(shards[0].path());
  CHECK(read(pairs) == Batches{{"!"}, {all[5], all[6]}});
}

TEST_CASE("file order: a place is read in the file that was opened, or not at all") {
  const TemporaryFolder folder;
  auto shards = write_shards(folder, {3, 3});
  const std::string text = spec_of(shards);
  std::weak_ptr<const Source> held;
  {
    Requests walks;
    held = walks.open(text, true);
    Cursor cursor = beginning_of(*held.lock());
    const auto next = [&](Requests& holder) {
      const auto source = holder.open(text);
      std::vector<Row> rows;
      FileWalk walk(*source, kEverything, cursor);
      walk.pass(1, 1 << 20, &rows);
      return payloads_of(read_rows(source, std::move(rows)));
    };
    const Strings all = share_of(shards, 0, 1);
    CHECK(next(walks) == Strings{all[0]});
    std::filesystem::remove(shards[0].path());
    Requests().open(text, true);  // another iteration looks at the files
    CHECK(next(walks) == Strings{all[1]});
    Requests others;
    CHECK(next(others) == Strings{all[2]});
  }
  CHECK(held.expired());
  const auto replaced = write_shards(folder, {4, 3});
  Cursor cursor = beginning_of(*open_source(text));
  cursor.slots[0] = {0, 26, 1, 12345};
  const auto source = open_source(text);
  const auto passed = FileWalk(*source, kEverything, cursor).pass(1, 1 << 20);
  CHECK(decode_error(passed.error).code == Code::failed_precondition);
  CHECK(holds(passed.error, shards[0].path()));
}

TEST_CASE("file order: numbers that are no place are refused") {
  const TemporaryFolder folder;
  const std::string text = spec_of(write_shards(folder, {3}));
  Cursor cursor = beginning_of(*open_source(text));
  Numbers good;
  cursor.encode(good);
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (const std::int64_t wrong : {std::int64_t{-7}, kMost, -kMost}) {
      Numbers numbers = good;
      numbers[i] = wrong;
      std::span<const std::int64_t> left = numbers;
      try {
        Cursor read = Cursor::decode(left);
        if (read.slots.size() != 1) continue;
        const auto source = open_source(text);
        std::vector<Row> rows;
        FileWalk(*source, kEverything, read).pass(3, 1 << 20, &rows);
      } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::invalid);
      }
    }
  }
  std::span<const std::int64_t> cut = std::span(good).first(good.size() - 1);
  CHECK(error_of([&] { Cursor::decode(cut); }).kind() == ErrorKind::invalid);
  CHECK(error_of([] { wanted_of(Numbers{0, 0, 1, 0, 1, 1, 1, 0, 0, 0}); }).kind() ==
        ErrorKind::invalid);
}
