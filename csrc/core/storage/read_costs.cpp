#include "core/storage/read_costs.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <vector>

namespace tfrfast {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kInOrderBytes = 1 << 20;
// In a shorter file, the reads would be too close together.
constexpr std::uint64_t kMinFileBytes = 32 * kInOrderBytes;
constexpr std::size_t kReadsAtOnce = 16;
// Some storages limit operations a second, but let the first few hundred pass.
constexpr std::size_t kMaxReads = 512;
constexpr double kEnoughS = 0.1;
// Slower reads are measured again.
constexpr double kFastS = 50e-6;
constexpr int kAttempts = 3;
constexpr double kGoldenRatio = 0.6180339887498949;
constexpr int kStarts = 1'000'003;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Places that are spread over the file. They differ in every process, because the reads of an
// earlier process are still in memory.
class Places {
 public:
  explicit Places(std::uint64_t file_bytes)
      : places_(file_bytes - kInOrderBytes),
        at_(static_cast<double>(Clock::now().time_since_epoch().count() % kStarts) / kStarts) {}

  std::uint64_t next() {
    at_ = std::fmod(at_ + kGoldenRatio, 1.0);
    return static_cast<std::uint64_t>(at_ * static_cast<double>(places_));
  }

 private:
  const std::uint64_t places_;
  double at_;
};

// Returns the seconds of one read. Nothing if most places are in memory.
std::optional<double> time_random_reads(const StoredFile& file, Places& places) {
  const Clock::time_point begin = Clock::now();
  std::size_t cold = 0;
  for (std::size_t reads = 0; reads < kMaxReads && seconds_since(begin) < kEnoughS;) {
    std::array<FileRange, kReadsAtOnce> ranges;
    for (FileRange& each : ranges) each = {places.next(), 1};
    // Asking whether a place is in memory may begin the read.
    cold += static_cast<std::size_t>(
        std::count_if(ranges.begin(), ranges.end(),
                      [&file](const FileRange& each) { return !file.is_cached(each.offset); }));
    reads += ranges.size();
    if (cold <= reads / 2) return {};
    const auto announced = file.announce(ranges);
    std::uint8_t byte;
    for (const FileRange& each : ranges) file.read(each.offset, &byte, 1);
  }
  return seconds_since(begin) / static_cast<double>(cold);
}

double time_read_in_order(const StoredFile& file, std::uint64_t offset) {
  std::vector<std::uint8_t> bytes(kInOrderBytes);
  const FileRange range{offset, bytes.size()};
  const Clock::time_point begin = Clock::now();
  const auto announced = file.announce({&range, 1});
  file.read(offset, bytes.data(), bytes.size());
  return seconds_since(begin);
}

}  // namespace

std::optional<ReadCosts> measure_read_costs(const StoredFile& file) {
  if (file.bytes() < kMinFileBytes) return {};
  Places places(file.bytes());
  double random_s = std::numeric_limits<double>::infinity();
  for (int attempt = 0; attempt < kAttempts && random_s > kFastS; ++attempt) {
    const std::optional<double> found = time_random_reads(file, places);
    if (!found) return {};
    random_s = std::min(random_s, *found);
  }
  return ReadCosts{random_s, time_read_in_order(file, places.next())};
}

}  // namespace tfrfast
