// Announces records before they are needed: cold disks and far storages reach their speed only with
// many requests under way. Costs next to nothing while the data are in the page cache.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/read/frame_reader.h"

namespace tfrfast {

// Tells the storages of these rows that they will be read soon: sorted by place, close ones as one
// range. How many bytes those are. Never throws: whoever reads gets the error.
std::uint64_t announce_rows(std::span<const Row> rows) noexcept;

// When to announce, to go by what was found lately. Safe from many threads.
class ReadAhead {
 public:
  // For records of so many bytes, on the average. What is far is always announced.
  ReadAhead(std::uint64_t mean_record_bytes, bool is_far) noexcept
      : mean_record_bytes_(mean_record_bytes), is_far_(is_far) {}

  // Whether to ask is_cold() about the next records: others were cold lately, or it is time to look
  // again. While all is warm this is all that happens.
  bool is_due(std::size_t record_count) noexcept;

  // Whether to announce records of which these are some: they, or others lately, are not cached.
  bool is_cold(std::span<const Row> samples) noexcept;

  static constexpr std::size_t kSamples = 4;

 private:
  const std::uint64_t mean_record_bytes_;
  const bool is_far_;
  std::atomic<std::int64_t> bytes_until_probe_{0};
  std::atomic<int> cold_calls_left_{0};
};

}  // namespace tfrfast
