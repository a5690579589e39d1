// Announces records before they are needed. Cold disks and remote storages are fast only with many
// requests at the same time. Costs next to nothing while the data are in the page cache.
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

// A range of a file that will be read.
struct StoredRange {
  const StoredFile* file = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// Announces ranges that will be read soon, sorted by place, with close ranges joined. Never throws:
// the read itself will report the error.
// Gaps of up to `gap_bytes` in local files are announced, too.
AnnouncedRows announce_ranges(std::vector<StoredRange> ranges, Reads reads = Reads::another,
                              std::uint64_t gap_bytes = 0) noexcept;
// Announces rows that will be read soon.
AnnouncedRows announce_rows(std::span<const Row> rows, Reads reads = Reads::another,
                            std::uint64_t gap_bytes = 0) noexcept;

// The bytes of a source that an epoch will read. 0 if memory may not keep them, so that pages would
// be read again.
std::uint64_t bytes_of_epoch(std::uint64_t record_count, std::uint64_t mean_record_bytes) noexcept;

// Decides when to announce: if recent records were not cached. Safe from many threads.
class ReadAhead {
 public:
  // Records have `mean_record_bytes` on average. Records of remote storages are always announced.
  // If an epoch will read the whole source, gaps between records are announced, too, until
  // `epoch_bytes` have been announced: long reads take less time than many short reads.
  ReadAhead(std::uint64_t mean_record_bytes, bool is_remote, std::uint64_t epoch_bytes = 0) noexcept
      : mean_record_bytes_(mean_record_bytes),
        epoch_bytes_(static_cast<std::int64_t>(epoch_bytes)),
        is_remote_(is_remote) {}

  // Whether to call is_cold() for the next records: recent records were cold, or the next look is
  // due. While everything is cached, this is the only call.
  bool is_due(std::size_t record_count) noexcept;

  // Whether to announce the sampled records: a sample, or a recent sample, was not cached.
  bool is_cold(std::span<const Row> samples) noexcept;

  AnnouncedRows announce(std::span<const Row> rows) noexcept;

  // Call when all remote records have been copied to this machine.
  void become_local() noexcept {
    // Threads share the flag, so avoid needless writes.
    if (is_remote_.load(std::memory_order_relaxed))
      is_remote_.store(false, std::memory_order_relaxed);
  }

  static constexpr std::size_t kSamples = 4;

 private:
  const std::uint64_t mean_record_bytes_;
  const std::int64_t epoch_bytes_;
  std::atomic<bool> is_remote_;
  std::atomic<std::int64_t> bytes_until_probe_{0};
  std::atomic<int> cold_calls_left_{0};
  std::atomic<int> watched_calls_left_{0};
  std::atomic<std::int64_t> epoch_bytes_left_{epoch_bytes_};
};

}  // namespace tfrfast
