#include "core/read/read_ahead.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <vector>

namespace tfrfast {
namespace {

// While everything is cached, a few records are looked at each time this much has been read.
constexpr std::int64_t kBytesPerProbe = 8 << 20;
// After a cold probe, this many calls announce their records without looking.
constexpr int kColdCalls = 16;

const StoredFile& file_of(const Row& row) {
  return *row.shard->file;
}

// The ranges of sorted rows of one file, up to as many bytes as the storage keeps.
std::vector<FileRange> ranges_of(std::span<const Row> rows) {
  const StorageTraits& traits = file_of(rows.front()).traits();
  std::vector<FileRange> ranges;
  std::uint64_t left = traits.max_announced_bytes;
  for (std::size_t row = 0; row < rows.size() && left > 0;) {
    const std::uint64_t begin = rows[row].frame.offset;
    std::uint64_t end = begin;
    for (; row < rows.size(); ++row) {
      const Frame& frame = rows[row].frame;
      // A far storage bridges gaps itself, and counts what will be read from it.
      if (traits.is_far ? frame.offset != end
                        : frame.offset > end && frame.offset - end > traits.gap_bytes) {
        break;
      }
      end = std::max(end, frame.offset + frame.payload_bytes + kFrameOverhead);
    }
    ranges.push_back({begin, std::min(end - begin, left)});
    left -= ranges.back().bytes;
  }
  return ranges;
}

}  // namespace

AnnouncedRows announce_rows(std::span<const Row> rows, Reads reads) noexcept {
  AnnouncedRows announced;
  try {
    std::vector<Row> sorted(rows.begin(), rows.end());
    std::sort(sorted.begin(), sorted.end(), [](const Row& a, const Row& b) {
      return &file_of(a) != &file_of(b) ? std::less<>()(&file_of(a), &file_of(b))
                                        : a.frame.offset < b.frame.offset;
    });
    for (auto row = sorted.begin(); row != sorted.end();) {
      const auto end = std::find_if(
          row, sorted.end(), [row](const Row& each) { return &file_of(each) != &file_of(*row); });
      const std::vector<FileRange> ranges = ranges_of({row, end});
      auto announcement = file_of(*row).announce(ranges, reads);
      if (announcement != nullptr) announced.files.push_back(std::move(announcement));
      for (const FileRange& each : ranges) announced.bytes += each.bytes;
      row = end;
    }
  } catch (const std::exception&) {
    // Only advice.
  }
  return announced;
}

bool ReadAhead::is_due(std::size_t record_count) noexcept {
  if (is_far_.load(std::memory_order_relaxed)) return true;
  if (cold_calls_left_.load(std::memory_order_relaxed) > 0) return true;
  const auto bytes = static_cast<std::int64_t>(record_count * mean_record_bytes_);
  if (bytes_until_probe_.fetch_sub(bytes, std::memory_order_relaxed) > bytes) return false;
  bytes_until_probe_.store(kBytesPerProbe, std::memory_order_relaxed);
  return true;
}

bool ReadAhead::is_cold(std::span<const Row> samples) noexcept {
  if (is_far_.load(std::memory_order_relaxed)) return true;
  if (cold_calls_left_.load(std::memory_order_relaxed) > 0) {
    cold_calls_left_.fetch_sub(1, std::memory_order_relaxed);
    return true;
  }
  const std::size_t count = std::min(kSamples, samples.size());
  for (std::size_t sample = 0; sample < count; ++sample) {
    const Row& row = samples[samples.size() / count * sample];
    if (!file_of(row).is_cached(row.frame.offset)) {
      cold_calls_left_.store(kColdCalls, std::memory_order_relaxed);
      return true;
    }
  }
  return false;
}

}  // namespace tfrfast
