#include "core/load/read_ahead.h"

#include <algorithm>
#include <exception>

#include "core/base/memory.h"
#include "core/base/pool.h"

namespace tfrfast {
namespace {

// While all is warm, some records are looked at whenever about this much has been read.
constexpr std::int64_t kBytesPerProbe = 8 << 20;
constexpr std::size_t kProbes = 4;
// After a cold probe, this many calls announce their records without looking.
constexpr int kColdCalls = 16;
// Ranges closer than this are read as one: skipping costs the disk as much as reading.
constexpr std::uint64_t kMergeGapBytes = 4 << 10;
// So much is announced for one batch: a larger one would push itself out of the cache.
constexpr std::uint64_t kMostAnnouncedBytes = std::uint64_t{1} << 30;

}  // namespace

bool ReadAhead::is_due(std::size_t record_count) noexcept {
  if (cold_calls_left_.load(std::memory_order_relaxed) > 0) return true;
  const auto bytes = static_cast<std::int64_t>(record_count * reader_.mean_record_bytes());
  if (bytes_until_probe_.fetch_sub(bytes, std::memory_order_relaxed) > bytes) return false;
  bytes_until_probe_.store(kBytesPerProbe, std::memory_order_relaxed);
  return true;
}

void ReadAhead::announce(std::span<const std::int64_t> records) noexcept {
  if (records.empty()) return;
  try {
    if (cold_calls_left_.load(std::memory_order_relaxed) > 0) {
      cold_calls_left_.fetch_sub(1, std::memory_order_relaxed);
    } else if (any_is_cold(records)) {
      cold_calls_left_.store(kColdCalls, std::memory_order_relaxed);
    } else {
      return;
    }
    request(records);
  } catch (const std::exception&) {
    // Advice only.
  }
}

bool ReadAhead::any_is_cold(std::span<const std::int64_t> records) const {
  const std::size_t probes = std::min(kProbes, records.size());
  for (std::size_t probe = 0; probe < probes; ++probe) {
    const std::int64_t record = records[records.size() / probes * probe];
    const Row row = reader_.locate(static_cast<std::uint64_t>(record));
    if (!row.shard->file->is_cached(row.frame.offset)) return true;
  }
  return false;
}

void ReadAhead::request(std::span<const std::int64_t> records) {
  const PooledBuffer memory(bytes_for<Row>(records.size()));
  Row* const rows = memory.as<Row>();
  Row* const end = rows + records.size();
  reader_.locate(records, rows);
  std::sort(rows, end, [](const Row& a, const Row& b) {
    return a.shard->file != b.shard->file ? a.shard->file < b.shard->file
                                          : a.frame.offset < b.frame.offset;
  });
  std::uint64_t announced = 0;
  for (const Row* row = rows; row != end && announced < kMostAnnouncedBytes;) {
    const StoredFile& file = *row->shard->file;
    const std::uint64_t begin = row->frame.offset;
    std::uint64_t range_end = begin;
    for (; row != end && row->shard->file.get() == &file &&
           (row->frame.offset <= range_end || row->frame.offset - range_end <= kMergeGapBytes);
         ++row) {
      range_end =
          std::max(range_end, row->frame.offset + row->frame.payload_bytes + kFrameOverhead);
    }
    const std::uint64_t bytes = std::min(range_end - begin, kMostAnnouncedBytes - announced);
    const FileRange range{begin, bytes};
    file.announce({&range, 1});
    announced += bytes;
  }
  announced_bytes_.fetch_add(announced, std::memory_order_relaxed);
}

}  // namespace tfrfast
