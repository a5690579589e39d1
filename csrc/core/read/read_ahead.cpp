#include "core/read/read_ahead.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <utility>
#include <vector>

#include "core/base/memory.h"

namespace tfrfast {
namespace {

// While everything is cached, a reader probes a few records each time it has read this many bytes.
// A probe asks the system about one byte. Counting major faults would not reveal a cold file once
// reading ahead works, and mincore() says nothing about files of other users.
constexpr std::int64_t kBytesPerProbe = 8 << 20;
// After a cold probe, this many calls announce their records without looking.
constexpr int kColdCalls = 16;
// After the cold calls, this many calls probe, because the next shard may be cold, too.
constexpr int kWatchedCalls = 64;
constexpr std::uint64_t kEpochGapBytes = 1 << 20;

// Joins sorted ranges of one file across small gaps, up to as many bytes as the storage keeps.
std::vector<FileRange> joined(std::span<const StoredRange> parts, std::uint64_t gap_bytes) {
  const StorageTraits& traits = parts.front().file->traits();
  gap_bytes = std::max<std::uint64_t>(gap_bytes, traits.gap_bytes);
  std::vector<FileRange> ranges;
  std::uint64_t left = traits.max_announced_bytes;
  for (std::size_t part = 0; part < parts.size() && left > 0;) {
    const std::uint64_t begin = parts[part].offset;
    std::uint64_t end = begin;
    for (; part < parts.size(); ++part) {
      const std::uint64_t offset = parts[part].offset;
      // A remote storage bridges gaps itself, and counts the bytes that will be read.
      if (traits.is_remote ? offset != end : offset > end && offset - end > gap_bytes) break;
      end = std::max(end, offset + parts[part].bytes);
    }
    ranges.push_back({begin, std::min(end - begin, left)});
    left -= ranges.back().bytes;
  }
  return ranges;
}

// Whether the ranges are a single one, every byte of which is a part's.
bool is_whole(std::span<const FileRange> ranges, std::span<const StoredRange> parts) {
  if (ranges.size() != 1) return false;
  std::uint64_t bytes = 0;
  for (const StoredRange& each : parts) bytes += each.bytes;
  return ranges.front().bytes <= bytes;
}

}  // namespace

AnnouncedRows announce_ranges(std::vector<StoredRange> parts, Reads reads,
                              std::uint64_t gap_bytes) noexcept {
  AnnouncedRows announced;
  try {
    std::sort(parts.begin(), parts.end(), [](const StoredRange& a, const StoredRange& b) {
      return a.file != b.file ? std::less<>()(a.file, b.file) : a.offset < b.offset;
    });
    for (auto part = parts.begin(); part != parts.end();) {
      const auto end = std::find_if(
          part, parts.end(), [part](const StoredRange& each) { return each.file != part->file; });
      const std::vector<FileRange> ranges = joined({part, end}, gap_bytes);
      const bool in_order = reads == Reads::another && is_whole(ranges, {part, end});
      auto announcement = part->file->announce(ranges, in_order ? Reads::in_order : reads);
      if (announcement != nullptr) announced.files.push_back(std::move(announcement));
      for (const FileRange& each : ranges) announced.bytes += each.bytes;
      part = end;
    }
  } catch (const std::exception&) {
    // An announcement is only advice.
  }
  return announced;
}

AnnouncedRows announce_rows(std::span<const Row> rows, Reads reads,
                            std::uint64_t gap_bytes) noexcept {
  std::vector<StoredRange> ranges;
  try {
    ranges.reserve(rows.size());
  } catch (const std::exception&) {
    return {};
  }
  for (const Row& row : rows) {
    ranges.push_back(
        {row.shard->file.get(), row.frame.offset, row.frame.payload_bytes + kFrameOverhead});
  }
  return announce_ranges(std::move(ranges), reads, gap_bytes);
}

std::uint64_t bytes_of_epoch(std::uint64_t record_count, std::uint64_t mean_record_bytes) noexcept {
  const std::uint64_t max_mean = max_memory_bytes() / 2 / std::max<std::uint64_t>(record_count, 1);
  return mean_record_bytes <= max_mean ? record_count * mean_record_bytes : 0;
}

bool ReadAhead::is_due(std::size_t record_count) noexcept {
  if (is_remote_.load(std::memory_order_relaxed)) return true;
  if (cold_calls_left_.load(std::memory_order_relaxed) > 0) return true;
  if (watched_calls_left_.load(std::memory_order_relaxed) > 0) {
    watched_calls_left_.fetch_sub(1, std::memory_order_relaxed);
    return true;
  }
  const auto bytes = static_cast<std::int64_t>(record_count * mean_record_bytes_);
  // Threads may overwrite each other's counts, which costs less than counting exactly.
  const std::int64_t left = bytes_until_probe_.load(std::memory_order_relaxed) - bytes;
  bytes_until_probe_.store(left > 0 ? left : kBytesPerProbe, std::memory_order_relaxed);
  return left <= 0;
}

bool ReadAhead::is_cold(std::span<const Row> samples) noexcept {
  if (is_remote_.load(std::memory_order_relaxed)) return true;
  if (cold_calls_left_.load(std::memory_order_relaxed) > 0) {
    cold_calls_left_.fetch_sub(1, std::memory_order_relaxed);
    return true;
  }
  const std::size_t count = std::min(kSamples, samples.size());
  for (std::size_t sample = 0; sample < count; ++sample) {
    const Row& row = samples[samples.size() / count * sample];
    if (!row.shard->file->is_cached(row.frame.offset)) {
      cold_calls_left_.store(kColdCalls, std::memory_order_relaxed);
      watched_calls_left_.store(kWatchedCalls, std::memory_order_relaxed);
      return true;
    }
  }
  if (epoch_bytes_left_.load(std::memory_order_relaxed) != epoch_bytes_) {
    epoch_bytes_left_.store(epoch_bytes_, std::memory_order_relaxed);
  }
  return false;
}

AnnouncedRows ReadAhead::announce(std::span<const Row> rows) noexcept {
  const bool with_gaps = epoch_bytes_left_.load(std::memory_order_relaxed) > 0;
  AnnouncedRows announced = announce_rows(rows, Reads::another, with_gaps ? kEpochGapBytes : 0);
  const auto bytes = static_cast<std::int64_t>(announced.bytes);
  const std::int64_t left = epoch_bytes_left_.fetch_sub(bytes, std::memory_order_relaxed);
  // The whole source was announced.
  if (left > 0 && left <= bytes) cold_calls_left_.store(0, std::memory_order_relaxed);
  return announced;
}

}  // namespace tfrfast
