// Asks the kernel for records before they are needed: cold disks reach their speed only with many
// requests in flight. Costs next to nothing once the data are in the page cache.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/read/reader.h"

namespace tfrfast {

// Shared by all workers of a loader; safe from many threads.
class ReadAhead {
 public:
  // Adds to `announced_bytes` what it asks for.
  ReadAhead(const Reader& reader, std::atomic<std::uint64_t>& announced_bytes)
      : reader_(reader), announced_bytes_(announced_bytes) {}

  // Whether records that will be read soon should be announced: the data were cold lately, or it
  // is time to look again. While all is warm this is all that happens.
  bool is_due(std::size_t record_count) noexcept;

  // Asks the kernel for these records if they, or others lately, are not cached. Never throws:
  // whoever reads gets the error.
  void announce(std::span<const std::int64_t> records) noexcept;

 private:
  bool any_is_cold(std::span<const std::int64_t> records) const;
  void request(std::span<const std::int64_t> records);

  const Reader& reader_;
  std::atomic<std::int64_t> bytes_until_probe_{0};
  std::atomic<int> cold_calls_left_{0};
  std::atomic<std::uint64_t>& announced_bytes_;
};

}  // namespace tfrfast
