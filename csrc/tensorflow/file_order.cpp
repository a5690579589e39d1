#include "tensorflow/file_order.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <utility>

#include "core/base/setting.h"
#include "core/codec/seek_points.h"
#include "core/index/damage_in_words.h"
#include "core/order/sequence.h"
#include "tensorflow/kernel_call.h"

namespace tfrfast::tensorflow {
namespace {

constexpr std::int64_t kNoFile = -1;
constexpr std::int64_t kClosing = -2;
// Tells these numbers from those of other versions, of which the first is another. A change of the
// numbers changes it, too.
constexpr std::int64_t kLayout = -2;
constexpr std::size_t kHeaderNumbers = 10;
constexpr std::size_t kWantedNumbers = 10;

// Inflated spans that stay for batches in work and for the next epoch: a pipeline holds these
// beside two batches that are made whole. Each file that takes turns needs its span, and the next
// one.
constexpr std::uint64_t kSpanBytesKept = 64 << 20;

using Wide = __int128;

std::int64_t limited(Wide number) noexcept {
  return static_cast<std::int64_t>(std::min<Wide>(number, kEndless));
}

// How many of the numbers first, first + stride, ... are below `end`. Dividing takes long.
Wide count_below(std::int64_t first, std::int64_t stride, Wide end) noexcept {
  if (end <= first) return 0;
  return stride == 1 ? end - first : (end - first - 1) / stride + 1;
}

// The first of these numbers that is `from` or more.
Wide first_from(std::int64_t first, std::int64_t stride, Wide from) noexcept {
  return first + count_below(first, stride, from) * stride;
}

std::string damage_text(const IndexedShard& shard, const Damage& damage) {
  try {
    throw_damage(shard, damage);
  } catch (const Error& error) {
    return encode_error(error);
  }
}

}  // namespace

void refuse_place() {
  throw Error(ErrorKind::invalid,
              "These numbers are not a place of an iteration in file order. Perhaps they come from "
              "a checkpoint of another version of tfrfast. Begin the iteration again.");
}

Wanted wanted_of(std::span<const std::int64_t> numbers) {
  if (numbers.size() != kWantedNumbers || numbers[0] < 0 || numbers[1] < 1 || numbers[2] < 0 ||
      numbers[3] < 0 || *std::min_element(&numbers[4], &numbers[7]) < 1) {
    throw Error(ErrorKind::invalid,
                "Records in file order are given by ten numbers: the first, the stride and the "
                "count, the rows of a batch, batches in a group, files that take turns, records of "
                "a turn, and three flags.");
  }
  return {{numbers[0], numbers[1], numbers[2]},
          numbers[3],
          numbers[4],
          numbers[5],
          numbers[6],
          numbers[7] != 0,
          numbers[8] != 0,
          numbers[9] != 0};
}

std::int64_t Cursor::files_ahead() const noexcept {
  std::int64_t count = 0;
  for (const FileRun& run : ahead) count += run.count;
  return count;
}

void Cursor::encode(std::vector<std::int64_t>& numbers) const {
  numbers.insert(numbers.end(),
                 {kLayout, records.first, records.stride, passed, found, turn, left,
                  static_cast<std::int64_t>(slots.size()), static_cast<std::int64_t>(ahead.size()),
                  static_cast<std::int64_t>(opened.size())});
  for (const Slot& slot : slots) {
    numbers.insert(numbers.end(), {slot.shard, static_cast<std::int64_t>(slot.byte),
                                   static_cast<std::int64_t>(slot.number), slot.version});
  }
  for (const FileRun& run : ahead)
    numbers.insert(numbers.end(), {run.first, run.stride, run.count});
  numbers.insert(numbers.end(), opened.begin(), opened.end());
}

Cursor Cursor::decode(std::span<const std::int64_t>& numbers) {
  if (numbers.size() < kHeaderNumbers || numbers[0] != kLayout) refuse_place();
  Cursor cursor;
  cursor.records = {numbers[1], numbers[2], 0};
  cursor.passed = numbers[3];
  cursor.found = numbers[4];
  cursor.turn = numbers[5];
  cursor.left = numbers[6];
  const auto slots = static_cast<std::uint64_t>(numbers[7]);
  const auto runs = static_cast<std::uint64_t>(numbers[8]);
  const auto opened = static_cast<std::uint64_t>(numbers[9]);
  numbers = numbers.subspan(kHeaderNumbers);
  // So many records that nothing overflows.
  constexpr std::int64_t most = kEndless / 4;
  if (cursor.records.first < 0 || cursor.records.stride < 1 || cursor.passed < 0 ||
      cursor.passed > most || cursor.found < 0 || cursor.found > most || cursor.left < 0 ||
      cursor.turn < 0 || slots > numbers.size() / 4 ||
      static_cast<std::uint64_t>(cursor.turn) >= slots || runs > (numbers.size() - slots * 4) / 3 ||
      opened > numbers.size() - slots * 4 - runs * 3) {
    refuse_place();
  }
  for (std::uint64_t i = 0; i < slots; ++i, numbers = numbers.subspan(4)) {
    if (numbers[0] < kClosing || numbers[1] < 0 || numbers[2] < 0 || numbers[2] > most) {
      refuse_place();
    }
    cursor.slots.push_back({numbers[0], static_cast<std::uint64_t>(numbers[1]),
                            static_cast<std::uint64_t>(numbers[2]), numbers[3]});
  }
  for (std::uint64_t i = 0; i < runs; ++i, numbers = numbers.subspan(3)) {
    const Wide end = numbers[0] + static_cast<Wide>(numbers[1]) * numbers[2];
    if (numbers[1] < 1 || numbers[2] < 1 || end > most) refuse_place();
    cursor.ahead.push_back({numbers[0], numbers[1], numbers[2]});
  }
  cursor.opened.assign(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(opened));
  numbers = numbers.subspan(opened);
  return cursor;
}

// The next wanted record of this epoch; -1 if there is none.
std::int64_t FileWalk::next_wanted() const noexcept {
  const Progression& records = wanted_.records;
  const Wide before = count_below(records.first, records.stride, cursor_.passed);
  return before < records.count ? limited(records.first + before * records.stride) : -1;
}

void FileWalk::next_turn() noexcept {
  cursor_.turn = (cursor_.turn + 1) % static_cast<std::int64_t>(cursor_.slots.size());
  cursor_.left = 0;
}

// Where files take turns, a file that has ended gives up its turn, too, as in TensorFlow.
void FileWalk::close(Cursor::Slot& slot) noexcept {
  slot = {wanted_.slots > 1 ? kClosing : kNoFile, 0, 0, 0};
  shards_[static_cast<std::size_t>(cursor_.turn)] = {};
}

FileWalk::Filled FileWalk::end_epoch() {
  // repeat() of nothing ends.
  if (cursor_.ahead.front().first == Cursor::kEnd || cursor_.found == 0) return Filled::ended;
  cursor_.ahead.pop_front();
  cursor_.passed = cursor_.found = cursor_.turn = cursor_.left = 0;
  return Filled::no;
}

FileWalk::Filled FileWalk::leave_epoch() {
  if (!wanted_.repeats) return Filled::ended;
  for (Cursor::Slot& slot : cursor_.slots) slot = {};
  for (auto& shard : shards_) shard = {};
  while (!cursor_.ahead.empty() && cursor_.ahead.front().first >= 0) cursor_.ahead.pop_front();
  return cursor_.ahead.empty() ? Filled::starved : end_epoch();
}

FileWalk::Filled FileWalk::fill(Cursor::Slot& slot) {
  if (slot.shard == kClosing) {
    slot.shard = kNoFile;
    next_turn();
    return Filled::no;
  }
  if (cursor_.ahead.empty()) return Filled::starved;
  Cursor::FileRun& run = cursor_.ahead.front();
  if (run.first < 0) {
    const bool is_over =
        std::all_of(cursor_.slots.begin(), cursor_.slots.end(),
                    [](const Cursor::Slot& each) { return each.shard == kNoFile; });
    if (is_over) return end_epoch();
    next_turn();
    return Filled::no;
  }
  slot = {run.first, 0, 0, 0};
  run.first += run.stride;
  if (--run.count == 0) cursor_.ahead.pop_front();
  return Filled::yes;
}

std::shared_ptr<Source::OpenShard> FileWalk::open(Cursor::Slot& slot, bool again) {
  const bool is_first = slot.version == 0;
  if (is_first && again && !cursor_.opened.empty()) {
    slot.version = cursor_.opened.front();
    cursor_.opened.pop_front();
  }
  auto shard = source_.open(static_cast<std::size_t>(slot.shard), slot.version);
  // All pipelines share the spans, so the one with the most turns decides.
  static std::atomic<std::uint64_t> kept = setting("TFRFAST_INFLATED_BYTES", kSpanBytesKept);
  const std::uint64_t of_turns = 2 * kSpanBytes * static_cast<std::uint64_t>(wanted_.slots);
  std::uint64_t before = kept;
  while (before < of_turns && !kept.compare_exchange_weak(before, of_turns)) {
  }
  shard->walked.keep_at_most(static_cast<std::size_t>(std::max(before, of_turns)));
  slot.version = shard->version;
  if (is_first && !again) cursor_.opened.push_back(slot.version);
  files_.push_back(shard);
  return shard;
}

FileWalk::Passed FileWalk::pass(std::int64_t rows, std::uint64_t bytes, std::vector<Row>* found) {
  Passed passed;
  while (passed.rows < rows && passed.bytes < bytes) {
    Cursor::Slot& slot = cursor_.slots[static_cast<std::size_t>(cursor_.turn)];
    const std::int64_t next = next_wanted();
    if (next < 0 || slot.shard < 0) {
      const Filled filled = next < 0 ? leave_epoch() : fill(slot);
      if (filled == Filled::starved || filled == Filled::ended) {
        passed.stop = filled == Filled::starved ? PassEnd::starved : PassEnd::ended;
        return passed;
      }
      continue;
    }
    // Records to skip, except between the rows of a batch, are passed by themselves.
    const bool is_skip = next > cursor_.passed && passed.rows == 0;
    if (passed.rows > 0 && next - cursor_.passed >= wanted_.records.stride) return passed;
    try {
      std::shared_ptr<Source::OpenShard>& opened = shards_[static_cast<std::size_t>(cursor_.turn)];
      if (opened == nullptr) opened = open(slot, found != nullptr);
      Source::OpenShard& shard = *opened;
      if (ranges_ != nullptr && shard.walked.index() == nullptr) {
        passed.stop = PassEnd::starved;
        return passed;
      }
      pass_stretch(shard, slot, is_skip ? 0 : rows - passed.rows, bytes - passed.bytes,
                   is_skip ? nullptr : found, passed);
    } catch (const Error& error) {
      passed.error = encode_error(error);
      close(slot);
    }
    if (passed.error.empty() && is_skip) return passed;
    if (passed.error.empty()) continue;
    ++cursor_.found;
    if (wanted_.slots > 1) next_turn();
    passed.stop = PassEnd::error;
    return passed;
  }
  return passed;
}

// Passes over frames of one file, at most to the last of `rows` wanted rows, or over damage.
// Without rows, passes over frames before the next wanted one.
void FileWalk::pass_stretch(Source::OpenShard& shard, Cursor::Slot& slot, std::int64_t rows,
                            std::uint64_t bytes, std::vector<Row>* found, Passed& passed) {
  const Progression& wanted = wanted_.records;
  const Progression& mine = cursor_.records;
  const Wide taken = rows == 0 ? 0 : static_cast<Wide>(rows - 1) * wanted.stride + 1;
  const Wide end = wanted.first + static_cast<Wide>(wanted.stride) * (wanted.count - 1) + 1;
  Wide count = std::min<Wide>(next_wanted() - cursor_.passed + taken, end - cursor_.passed);
  if (wanted_.slots > 1) {
    if (cursor_.left == 0) cursor_.left = wanted_.block;
    count = std::min<Wide>(count, cursor_.left);
  }
  const auto number = static_cast<std::int64_t>(slot.number);
  const Wide first = first_from(mine.first, mine.stride, number);
  const std::int64_t frames = limited(first - number + (count - 1) * mine.stride + 1);

  frames_.clear();
  const ShardPlace begin{slot.byte, slot.number};
  const WalkedShard::PassedFrames stretch = shard.walked.pass(
      begin, static_cast<std::uint64_t>(frames), bytes, found != nullptr ? &frames_ : nullptr);
  const auto next = static_cast<std::int64_t>(stretch.next.number);
  const std::int64_t shares = limited(count_below(limited(first), mine.stride, next));
  // The wanted records among [cursor_.passed, cursor_.passed + shares), counted from the first one.
  const Wide from = count_below(wanted.first, wanted.stride, cursor_.passed);
  const Wide passed_now = static_cast<Wide>(cursor_.passed) + shares;
  const Wide to =
      std::min<Wide>(count_below(wanted.first, wanted.stride, passed_now), wanted.count);
  for (Wide i = from; found != nullptr && i < to; ++i) {
    const Wide record = first + (wanted.first + i * wanted.stride - cursor_.passed) * mine.stride;
    const auto at = static_cast<std::uint64_t>(record);
    found->push_back({&shard.file, at, at, frames_[static_cast<std::size_t>(at - slot.number)]});
  }
  if (ranges_ != nullptr && to > from) {
    ranges_->push_back(
        {shards_[static_cast<std::size_t>(cursor_.turn)], begin.byte, stretch.next.byte});
  }
  if (to > from) {
    passed.rows += static_cast<std::int64_t>(to - from);
    cursor_.found += static_cast<std::int64_t>(to - from);
  }
  passed.bytes += stretch.next.byte - begin.byte;
  cursor_.passed += shares;
  slot.byte = stretch.next.byte;
  slot.number = stretch.next.number;
  if (stretch.damage && !source_.spec().skip_damage && !is_clean_end(*stretch.damage) &&
      cursor_.passed >= wanted.first) {
    passed.error = damage_text(shard.file, *stretch.damage);
  }
  if (stretch.is_end) {
    close(slot);
  } else if (wanted_.slots > 1) {
    cursor_.left -= shares;
    if (cursor_.left == 0) next_turn();
  }
}

WalkedBatch::WalkedBatch(std::span<const std::int64_t> numbers) {
  if (numbers.size() < 1 + kWantedNumbers) refuse_place();
  rows = numbers[0];
  wanted = wanted_of(numbers.subspan(1, kWantedNumbers));
  numbers = numbers.subspan(1 + kWantedNumbers);
  if (rows > 0) cursor = Cursor::decode(numbers);
}

std::vector<std::int64_t> WalkedBatch::head(std::int64_t rows, const Wanted& wanted) {
  const Progression& records = wanted.records;
  return {rows,           records.first,     records.stride, records.count,
          wanted.rows,    wanted.group,      wanted.slots,   wanted.block,
          wanted.is_full, wanted.ends_short, wanted.repeats};
}

BatchRows find_rows(std::shared_ptr<const Source> source, WalkedBatch& walked) {
  BatchRows batch;
  FileWalk walk(*source, walked.wanted, walked.cursor);
  while (static_cast<std::int64_t>(batch.rows.size()) < walked.rows && batch.error.empty()) {
    const FileWalk::Passed passed =
        walk.pass(walked.rows - static_cast<std::int64_t>(batch.rows.size()),
                  std::numeric_limits<std::int64_t>::max(), &batch.rows);
    batch.error = passed.error;
    if (passed.stop == FileWalk::PassEnd::starved || passed.stop == FileWalk::PassEnd::ended) {
      refuse_place();
    }
  }
  batch.source = std::move(source);
  batch.files = walk.take_files();
  return batch;
}

}  // namespace tfrfast::tensorflow
