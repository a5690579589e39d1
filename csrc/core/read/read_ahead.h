// Announces records before they are needed, because cold disks and far storages are fast only with
// many requests at the same time. Costs next to nothing while the data are in the page cache.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/read/frame_reader.h"

namespace tfrfast {

struct AnnouncedRows {
  Announcements files;
  std::uint64_t bytes = 0;
};

// Bytes of a file that will be read.
struct StoredRange {
  const StoredFile* file = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// Tells the storages that these ranges will be read soon, sorted by place, with close ones as one.
// Never throws: the read itself will report the error.
AnnouncedRows announce_ranges(std::vector<StoredRange> ranges,
                              Reads reads = Reads::another) noexcept;
// Tells the storages that these rows will be read soon.
AnnouncedRows announce_rows(std::span<const Row> rows, Reads reads = Reads::another) noexcept;

// Decides when to announce, judging by whether recent records were cached. Safe from many threads.
class ReadAhead {
 public:
  // For records of `mean_record_bytes` on average. Records of far storages are always announced.
  ReadAhead(std::uint64_t mean_record_bytes, bool is_far) noexcept
      : mean_record_bytes_(mean_record_bytes), is_far_(is_far) {}

  // Whether to ask is_cold() about the next records, because others were cold lately or because it
  // is time to look again. While everything is cached, nothing else is called.
  bool is_due(std::size_t record_count) noexcept;

  // Whether to announce the records that these are samples of: a sample, or a recent one, was not
  // cached.
  bool is_cold(std::span<const Row> samples) noexcept;

  // All far records have come to this machine.
  void come_near() noexcept {
    // Threads share it, so it is not written without need.
    if (is_far_.load(std::memory_order_relaxed)) is_far_.store(false, std::memory_order_relaxed);
  }

  static constexpr std::size_t kSamples = 4;

 private:
  const std::uint64_t mean_record_bytes_;
  std::atomic<bool> is_far_;
  std::atomic<std::int64_t> bytes_until_probe_{0};
  std::atomic<int> cold_calls_left_{0};
};

}  // namespace tfrfast
