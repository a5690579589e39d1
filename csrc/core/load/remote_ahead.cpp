#include "core/load/remote_ahead.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "core/storage/remote/remote_exchange.h"

namespace tfrfast {
namespace {

// Batches are announced this many bytes ahead. If records lie apart, each record is a request, and
// this many rows are enough.
constexpr std::uint64_t kAheadBytes = std::uint64_t{128} << 20;
constexpr std::uint64_t kAheadRows = 1024;
constexpr std::uint64_t kRequestBytes = std::uint64_t{8} << 20;
constexpr std::uint64_t kMaxTogether = 1024;
constexpr std::uint64_t kTogetherRows = std::uint64_t{1} << 18;
constexpr std::uint64_t kTogetherBatches = std::uint64_t{1} << 14;
// This many batches and rows reveal whether records are read in order.
constexpr std::uint64_t kBatchesToTell = 8;
constexpr std::size_t kRowsToTell = 8;

bool are_neighbours(std::span<const std::int64_t> records) {
  std::size_t steps = 0;
  for (std::size_t row = 1; row < records.size(); ++row) {
    steps += records[row] == records[row - 1] + 1;
  }
  return records.size() > 1 && steps * 2 >= records.size() - 1;
}

// The number and size of requests for some records, with small gaps bridged.
struct RequestCost {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};

RequestCost requests_for(std::vector<std::int64_t> records, std::uint64_t mean_record_bytes) {
  std::sort(records.begin(), records.end());
  const std::uint64_t size = std::max<std::uint64_t>(mean_record_bytes, 1);
  const auto near = static_cast<std::int64_t>(kRemoteTraits.gap_bytes / size + 1);
  RequestCost requests;
  for (std::size_t row = 0; row < records.size(); ++row) {
    const std::int64_t step = row == 0 ? near + 1 : records[row] - records[row - 1];
    requests.count += step > near;
    requests.bytes += (step > near ? 1 : static_cast<std::uint64_t>(step)) * size;
  }
  return requests;
}

// Returns how many batches to announce together. Returns 1 if joint announcements would not halve
// the requests, or would fetch many unread bytes.
std::uint64_t worth_together(
    std::uint64_t mean_record_bytes, std::uint64_t rows, std::uint64_t batch_count,
    const std::function<std::vector<std::int64_t>(std::uint64_t)>& records_of,
    std::uint64_t together_bytes) {
  const std::uint64_t bytes = std::max<std::uint64_t>(rows * mean_record_bytes, 1);
  const std::uint64_t together =
      std::min({together_bytes / bytes, kTogetherRows / rows, kTogetherBatches, batch_count});
  if (together < 2) return 1;
  std::uint64_t apart = 0;
  std::vector<std::int64_t> all;
  for (std::uint64_t batch = 0; batch < together; ++batch) {
    const std::vector<std::int64_t> records = records_of(batch);
    // The first batches stand for all.
    if (batch < kBatchesToTell) apart += requests_for(records, mean_record_bytes).count;
    all.insert(all.end(), records.begin(), records.end());
  }
  apart = apart * together / std::min(together, kBatchesToTell);
  const std::uint64_t read = all.size() * mean_record_bytes;
  const RequestCost requests = requests_for(std::move(all), mean_record_bytes);
  return requests.count * 2 <= apart && requests.bytes * 2 <= read * 3 ? together : 1;
}

}  // namespace

RemoteAhead remote_ahead(std::uint64_t mean_record_bytes, std::uint64_t batch_count,
                         const std::function<std::vector<std::int64_t>(std::uint64_t)>& records_of,
                         std::uint64_t together_bytes) {
  std::vector<std::int64_t> first;  // one batch may be too small to judge by
  std::uint64_t rows = 1;           // rows of the largest batch so far
  for (std::uint64_t batch = 0; batch < std::min(batch_count, kBatchesToTell); ++batch) {
    const std::vector<std::int64_t> records = records_of(batch);
    rows = std::max<std::uint64_t>(rows, records.size());
    first.insert(first.end(), records.begin(), records.end());
    if (first.size() >= kRowsToTell) break;
  }
  const std::uint64_t bytes = std::max<std::uint64_t>(rows * mean_record_bytes, 1);
  const std::uint64_t batches = kAheadBytes / bytes;
  if (!are_neighbours(first)) {
    const std::uint64_t together =
        worth_together(mean_record_bytes, rows, batch_count, records_of, together_bytes);
    if (together > 1) return {batches / 2, together, bytes};
    return {std::min(batches, kAheadRows / rows), 1, bytes};
  }
  return {batches, std::clamp<std::uint64_t>(kRequestBytes / bytes, 1, kMaxTogether), bytes};
}

}  // namespace tfrfast
