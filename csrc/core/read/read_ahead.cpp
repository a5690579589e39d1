#include "core/read/read_ahead.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <utility>
#include <vector>

namespace tfrfast {
namespace {

// While everything is cached, a reader looks at a few records after each so many bytes. A look asks
// the system for one byte. Counting major faults would not reveal a cold file once reading ahead
// works, and mincore() says nothing about files of other users.
constexpr std::int64_t kBytesPerProbe = 8 << 20;
// After a cold probe, this many calls announce their records without looking.
constexpr int kColdCalls = 16;

// Joins sorted ranges of one file across small gaps, up to as many bytes as the storage keeps.
std::vector<FileRange> joined(std::span<const StoredRange> parts) {
  const StorageTraits& traits = parts.front().file->traits();
  std::vector<FileRange> ranges;
  std::uint64_t left = traits.max_announced_bytes;
  for (std::size_t part = 0; part < parts.size() && left > 0;) {
    const std::uint64_t begin = parts[part].offset;
    std::uint64_t end = begin;
    for (; part < parts.size(); ++part) {
      const std::uint64_t offset = parts[part].offset;
      // A remote storage bridges gaps itself, and counts the bytes that will be read.
      if (traits.is_remote ? offset != end : offset > end && offset - end > traits.gap_bytes) break;
      end = std::max(end, offset + parts[part].bytes);
    }
    ranges.push_back({begin, std::min(end - begin, left)});
    left -= ranges.back().bytes;
  }
  return ranges;
}

}  // namespace

AnnouncedRows announce_ranges(std::vector<StoredRange> parts, Reads reads) noexcept {
  AnnouncedRows announced;
  try {
    std::sort(parts.begin(), parts.end(), [](const StoredRange& a, const StoredRange& b) {
      return a.file != b.file ? std::less<>()(a.file, b.file) : a.offset < b.offset;
    });
    for (auto part = parts.begin(); part != parts.end();) {
      const auto end = std::find_if(
          part, parts.end(), [part](const StoredRange& each) { return each.file != part->file; });
      const std::vector<FileRange> ranges = joined({part, end});
      auto announcement = part->file->announce(ranges, reads);
      if (announcement != nullptr) announced.files.push_back(std::move(announcement));
      for (const FileRange& each : ranges) announced.bytes += each.bytes;
      part = end;
    }
  } catch (const std::exception&) {
    // An announcement is only advice.
  }
  return announced;
}

AnnouncedRows announce_rows(std::span<const Row> rows, Reads reads) noexcept {
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
  return announce_ranges(std::move(ranges), reads);
}

bool ReadAhead::is_due(std::size_t record_count) noexcept {
  if (is_remote_.load(std::memory_order_relaxed)) return true;
  if (cold_calls_left_.load(std::memory_order_relaxed) > 0) return true;
  const auto bytes = static_cast<std::int64_t>(record_count * mean_record_bytes_);
  if (bytes_until_probe_.fetch_sub(bytes, std::memory_order_relaxed) > bytes) return false;
  bytes_until_probe_.store(kBytesPerProbe, std::memory_order_relaxed);
  return true;
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
      bytes_until_probe_.store(0, std::memory_order_relaxed);  // look again after these calls
      return true;
    }
  }
  return false;
}

}  // namespace tfrfast
