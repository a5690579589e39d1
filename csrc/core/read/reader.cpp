#include "core/read/reader.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>

#include "core/base/memory.h"
#include "core/base/numbering.h"
#include "core/base/parallel.h"
#include "core/codec/seek_points.h"
#include "core/index/index_state.h"
#include "core/read/batch_space.h"
#include "core/read/row_order.h"
#include "core/read/source_spec.h"
#include "core/storage/fault_guard.h"

namespace tfrfast {
namespace {

// Less work than this is not worth waking another thread.
constexpr std::size_t kRowsPerTask = 512;
// The cost of a row, however short, in bytes.
constexpr std::uint64_t kRowCostBytes = 128;
// Index entries fetched together, so that their cache misses overlap.
constexpr std::size_t kLookupRows = 32;
// The mean only decides how much is read at once. The limit keeps products of the mean from
// overflowing.
constexpr std::uint64_t kMaxMeanBytes = std::uint64_t{1} << 32;

void refuse_other_samples(const IndexedShard& shard) {
  const bool is_made_from_it = shard.index->origin().empty();
  if (is_made_from_it || !samples_differ(*shard.index, *shard.file)) return;
  const std::string& path = shard.file->path();
  throw Error(ErrorKind::stale_index,
              "The index does not fit: some frames of '" + path +
                  "' have other lengths or checksums than when '" + shard.index->origin() +
                  "' was made. The shard was changed. Build the index again: "
                  "`tfrfast index --force " +
                  path + "`, then open it again.",
              {path, {}, {}});
}

// If the first undelivered row was not tried, gives it the error of the row that failed.
void explain_untried(std::vector<BadRow>& bad) {
  const auto failed = std::find_if(bad.begin(), bad.end(), [](const BadRow& each) {
    return !each.is_damage && !each.is_untried;
  });
  const auto untried =
      std::find_if(bad.begin(), failed, [](const BadRow& each) { return each.is_untried; });
  if (untried != failed) untried->error = failed->error;
}

// Like cut_tasks(), for sorted rows of compressed shards, where each span costs as much as its
// first row.
std::vector<std::size_t> cut_tasks_at_spans(std::span<const Row> rows) {
  std::vector<std::size_t> starts{0};
  for (std::size_t row = 1; row < rows.size(); ++row) {
    const Row &here = rows[row], &first = rows[starts.back()];
    if (here.shard != first.shard || here.frame.offset - first.frame.offset >= kSpanBytes) {
      starts.push_back(row);
    }
  }
  starts.push_back(rows.size());
  return starts;
}

// Returns whether every shard passes `test`. A shard that has passed once always passes, and the
// shards before `passed` have passed.
template <class Test>
bool holds_for_all(std::size_t count, std::atomic<std::size_t>& passed, const Test& test) noexcept {
  const std::size_t before = passed.load(std::memory_order_relaxed);
  std::size_t shard = before;
  while (shard < count && test(shard)) ++shard;
  if (shard != before) passed.store(shard, std::memory_order_relaxed);
  return shard == count;
}

}  // namespace

Reader::Reader(std::shared_ptr<const ShardSet> shards, const ReadOptions& options)
    : shards_(std::move(shards)), options_(options) {
  std::uint64_t bytes = 0;
  bool state_tells = true;
  for (std::size_t shard = 0; shard < shards_->size(); ++shard) {
    const ShardSlot& slot = shards_->slot(shard);
    bytes = add_or_max(bytes, slot.stream_bytes());
    is_remote_ = is_remote_ || slot.is_remote();
    state_tells = state_tells && (slot.is_remote() || slot.file_facts().version_lasts);
  }
  if (!state_tells) {
    samples_ = std::make_unique<std::atomic<Samples>[]>(shards_->size());
    samples_left_ = static_cast<std::int64_t>(shards_->size());
  }
  mean_record_bytes_ = std::min(bytes / std::max<std::uint64_t>(record_count(), 1), kMaxMeanBytes);
  read_ahead_.emplace(mean_record_bytes_, is_remote_);
}

void Reader::check_range(std::uint64_t record) const {
  if (record >= record_count()) {
    throw_no_such("Record", std::to_string(static_cast<std::int64_t>(record)), record_count());
  }
}

// A negative number becomes a huge number, which is out of range, too.
void Reader::compare_samples(std::span<const std::int64_t> records) const {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  if (samples_left_.load(kRelaxed) <= 0) return;
  std::vector<std::size_t> newly_read;
  std::optional<std::size_t> candidate;
  std::size_t shard = 0;
  for (const std::int64_t number : records) {
    const auto record = static_cast<std::uint64_t>(number);
    if (record >= record_count()) continue;  // the reading will throw
    shard = shards_->place(record, shard).shard;
    const Samples samples = samples_[shard].load(kRelaxed);
    if (samples == Samples::read_before) candidate = shard;
    if (samples == Samples::unread) newly_read.push_back(shard);
  }
  if (candidate) {
    refuse_other_samples((*shards_)[*candidate]);
    if (samples_[*candidate].exchange(Samples::compared, kRelaxed) != Samples::compared) {
      samples_left_.fetch_sub(1, kRelaxed);
    }
  }
  for (const std::size_t each : newly_read) {
    Samples unread = Samples::unread;
    samples_[each].compare_exchange_strong(unread, Samples::read_before, kRelaxed);
  }
}

Row Reader::locate(std::uint64_t record) const {
  check_range(record);
  const ShardSet::Place place = shards_->place(record);
  const IndexedShard& shard = (*shards_)[place.shard];
  return {&shard, place.number, record, shard.index->frame(place.number)};
}

void Reader::open_remote(std::span<const std::int64_t> records) const {
  if (!is_remote_ || all_are_open()) return;
  std::vector<std::size_t> unread;
  std::size_t shard = 0;
  for (const std::int64_t number : records) {
    const auto record = static_cast<std::uint64_t>(number);
    if (record >= record_count()) continue;  // the reading will throw
    shard = shards_->place(record, shard).shard;
    if (!shards_->is_open(shard)) unread.push_back(shard);
  }
  if (unread.empty()) return;
  std::sort(unread.begin(), unread.end());
  unread.erase(std::unique(unread.begin(), unread.end()), unread.end());
  shards_->open_remote(unread);
}

void Reader::locate_rows(std::span<const std::int64_t> records, Row* rows) const {
  std::array<PackedOffsets::Pair, kLookupRows> pairs;
  std::size_t hint = 0;
  for (std::size_t begin = 0; begin < records.size(); begin += kLookupRows) {
    const std::size_t count = std::min(kLookupRows, records.size() - begin);
    Row* const group = rows + begin;
    for (std::size_t i = 0; i < count; ++i) {
      const auto record = static_cast<std::uint64_t>(records[begin + i]);
      check_range(record);
      const ShardSet::Place place = shards_->place(record, hint);
      hint = place.shard;
      const IndexedShard& shard = (*shards_)[place.shard];
      shard.index->check(place.number);
      __builtin_prefetch(shard.index->offsets().place_of_block(place.number));
      group[i] = {&shard, place.number, record, {}};
    }
    const bool readable = run_guarded([&pairs, group, count] {
      for (std::size_t i = 0; i < count; ++i) {
        __builtin_prefetch(group[i].shard->index->offsets().place_of_residual(group[i].number));
      }
      for (std::size_t i = 0; i < count; ++i) {
        pairs[i] = group[i].shard->index->offsets().pair(group[i].number);
      }
    });
    for (std::size_t i = 0; i < count; ++i) {
      const ShardIndex& index = *group[i].shard->index;
      const auto [offset, next] = pairs[i];
      if (!readable || !index.decode(group[i].number, offset, next, &group[i].frame)) {
        index.throw_nonsense(group[i].number);
      }
    }
  }
}

Reader::Rows Reader::read_rows(const ReadRequest& request) const {
  const AtBadRow at_bad_row = options_.skip_damage ? AtBadRow::go_on : AtBadRow::stop;
  const std::size_t count = request.records.size();
  open_remote(request.records);
  compare_samples(request.records);
  Rows outcome{std::make_shared<RecordBatch>(count), {}};
  RecordBatch& batch = *outcome.batch;
  if (shards_->source_starts().size() > 1) {
    batch.set_source_starts(shards_->shared_source_starts());
  }
  const PooledBuffer memory(bytes_for<Row>(count));
  Row* const rows = memory.as<Row>();
  std::uninitialized_default_construct_n(rows, count);

  const std::size_t lookups = (count + kRowsPerTask - 1) / kRowsPerTask;
  parallel_for(lookups, request.threads, [&](std::size_t task) {
    const std::size_t first = task * kRowsPerTask;
    locate_rows(request.records.subspan(first, std::min(kRowsPerTask, count - first)),
                rows + first);
  });
  std::copy_n(request.records.data(), count, batch.indices());
  make_space({rows, count}, batch);
  Announcements announced;
  if (!request.is_announced) announced = announce({rows, count}, *read_ahead_);

  std::vector<std::size_t> order;
  const bool is_inflated = inflates() && any_is_inflated({rows, count});
  if (is_inflated || are_read_by_calls({rows, count})) order = order_of_places({rows, count});
  std::vector<Row> sorted;
  sorted.reserve(order.size());
  for (const std::size_t row : order) sorted.push_back(rows[row]);
  const std::span<const Row> as_read = order.empty() ? std::span(rows, count) : std::span(sorted);
  const std::vector<std::size_t> starts =
      is_inflated && !order.empty() ? cut_tasks_at_spans(as_read)
                                    : cut_tasks(count, [&](std::size_t row) {
                                        return as_read[row].frame.payload_bytes + kRowCostBytes;
                                      });
  std::mutex mutex;
  parallel_for(starts.size() - 1, request.threads, [&](std::size_t task) {
    if (request.cancelled != nullptr && *request.cancelled) throw ReadCancelled();
    const std::size_t first = starts[task];
    const std::size_t rows_here = starts[task + 1] - first;
    // Sorted rows are not in the batch's order, so all are tried to find the first bad row.
    std::vector<BadRow> bad =
        order.empty()
            ? read_frames({rows + first, rows_here}, options_.verify, at_bad_row, batch, first)
            : read_frames({sorted.data() + first, rows_here},
                          std::span(order).subspan(first, rows_here), options_.verify,
                          AtBadRow::go_on, batch);
    if (bad.empty()) return;
    std::lock_guard lock(mutex);
    std::move(bad.begin(), bad.end(), std::back_inserter(outcome.bad));
  });
  std::sort(outcome.bad.begin(), outcome.bad.end(),
            [](const BadRow& a, const BadRow& b) { return a.row < b.row; });
  explain_untried(outcome.bad);
  return outcome;
}

void Reader::locate(std::span<const std::int64_t> records, Row* rows) const {
  open_remote(records);
  compare_samples(records);
  std::uninitialized_default_construct_n(rows, records.size());
  locate_rows(records, rows);
}

AnnouncedRows Reader::announce(std::span<const std::int64_t> records, ReadAhead& read_ahead,
                               std::uint64_t) const {
  try {
    open_remote(records);
    std::array<Row, ReadAhead::kSamples> samples;
    const std::size_t sample_count = std::min(samples.size(), records.size());
    for (std::size_t sample = 0; sample < sample_count; ++sample) {
      const std::int64_t record = records[records.size() / sample_count * sample];
      samples[sample] = locate(static_cast<std::uint64_t>(record));
    }
    if (!read_ahead.is_cold(std::span(samples).first(sample_count))) return {};
    const PooledBuffer memory(bytes_for<Row>(records.size()));
    Row* const rows = memory.as<Row>();
    std::uninitialized_default_construct_n(rows, records.size());
    locate_rows(records, rows);
    return read_ahead.announce({rows, records.size()});
  } catch (const std::exception&) {
    return {};
  }
}

bool Reader::all_are_open() const noexcept {
  return holds_for_all(shards_->size(), open_shards_,
                       [this](std::size_t shard) { return shards_->is_open(shard); });
}

RecordOrigin Reader::origin(std::uint64_t record) const {
  const ShardSet::Place place = shards_->place(record);
  return RecordOrigin::in_shard(shards_->slot(place.shard).path(), place.number);
}

bool Reader::inflates() const noexcept {
  return !holds_for_all(shards_->size(), plain_shards_, [this](std::size_t shard) {
    const ShardSlot& slot = shards_->slot(shard);
    const IndexedShard* const opened = slot.opened();
    return !slot.is_inflated() || (opened != nullptr && opened->file->mapping() != nullptr);
  });
}

void Reader::describe_parts(std::vector<PartSpec>& parts) const {
  parts.push_back({shards_->size(), {}});
}

bool Reader::is_remote() const noexcept {
  return is_remote_ && !holds_for_all(shards_->size(), local_shards_, [this](std::size_t shard) {
           return !shards_->slot(shard).is_remote();
         });
}

Announcements Reader::announce(std::span<const Row> rows, ReadAhead& read_ahead) const noexcept {
  if (!is_remote()) read_ahead.become_local();
  if (!read_ahead.is_due(rows.size()) || !read_ahead.is_cold(rows)) return {};
  return read_ahead.announce(rows).files;
}

void Reader::read_into(const Row& row, std::uint8_t* out, std::uint64_t batch_bytes) const {
  const auto record = static_cast<std::int64_t>(row.record);
  compare_samples({&record, 1});
  // Announce the row as one request, however long the row is.
  AnnouncedRows announced;
  if (row.shard->file->traits().is_remote) {
    announced = announce_rows({&row, 1});
  } else if (batch_bytes == 0 && !is_remote_ && read_ahead_->is_due(1) &&
             read_ahead_->is_cold({&row, 1})) {
    announced = announce_rows({&row, 1});  // the rows of a batch have been announced together
  }
  read_frame(row, options_.verify,
             options_.skip_damage ? SkipAdvice::not_for_one : SkipAdvice::try_it, out, batch_bytes);
}

std::shared_ptr<const RecordBatch> Reader::read_one(std::uint64_t record) const {
  const Row row = locate(record);
  auto batch = std::make_shared<RecordBatch>(1);
  batch->indices()[0] = static_cast<std::int64_t>(record);
  make_space({&row, 1}, *batch);
  read_into(row, batch->data());
  return batch;
}

std::uint64_t Reader::range_end(std::uint64_t begin, std::uint64_t target_bytes,
                                std::uint64_t max_records) const {
  if (begin >= record_count()) return record_count();
  const std::uint64_t last = begin + std::min(max_records, record_count() - begin);
  const ShardSet::Place place = shards_->place(begin);
  const ShardIndex& index = *(*shards_)[place.shard].index;
  const std::uint64_t shard_end =
      std::min(last, shards_->first_record(place.shard) + index.record_count());
  // Offsets ascend, so a binary search finds the first record too far from `begin`.
  const std::uint64_t origin = index.frame(place.number).offset;
  std::uint64_t low = 1;
  std::uint64_t high = shard_end - begin;
  while (low < high) {
    const std::uint64_t middle = low + (high - low + 1) / 2;
    const Frame frame = index.frame(place.number + middle - 1);
    const std::uint64_t bytes = frame.offset - origin + kFrameOverhead + frame.payload_bytes;
    if (bytes <= target_bytes) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return begin + low;
}

std::vector<SkippedBytes> Reader::skipped() const {
  std::vector<SkippedBytes> all;
  for (std::size_t shard = 0; shard < shards_->size(); ++shard) {
    const IndexedShard* const opened = shards_->slot(shard).opened();
    if (opened == nullptr) continue;  // a shard with damage is always open
    for (const Damage& damage : opened->index->damage()) {
      all.push_back({opened->file->path(), damage.begin, damage.end, damage.records_lost});
    }
  }
  append_skipped(all);
  return all;
}

}  // namespace tfrfast
