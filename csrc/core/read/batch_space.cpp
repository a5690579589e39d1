#include "core/read/batch_space.h"

#include <algorithm>
#include <new>
#include <string>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/codec/inflating_limits.h"
#include "core/read/bad_row.h"

namespace tfrfast {
Error too_large(std::span<const Row> rows) {
  std::uint64_t total = 0;
  const Row* largest = rows.data();
  for (const Row& row : rows) {
    total = add_or_max(total, row.frame.payload_bytes);
    if (row.frame.payload_bytes > largest->frame.payload_bytes) largest = &row;
  }
  std::string what = describe(*largest);
  if (rows.size() == 1) {
    what[0] = 'R';
  } else {
    const bool countable = total < std::numeric_limits<std::uint64_t>::max();
    what = "The " + std::to_string(rows.size()) + " records of a batch have " +
           (countable ? std::to_string(total) : "2^64 or more") + " bytes. The largest is " + what;
  }
  return Error(ErrorKind::memory,
               what + ", of " + std::to_string(largest->frame.payload_bytes) +
                   " bytes. That is more than memory can hold: this process may have " +
                   std::to_string(max_memory_bytes()) + " bytes in all. " +
                   (rows.size() == 1 ? "Leave it out." : "Read fewer records at once."),
               {largest->shard->file->path(), static_cast<std::int64_t>(largest->number),
                static_cast<std::int64_t>(largest->frame.offset)});
}

namespace {

// Deflate turns a few megabytes into gigabytes, which are never read at once on purpose.
bool is_inflated_too_far(const Row& row) noexcept {
  // In file order no index exists yet, so no walk has checked the length.
  return row.shard->file->is_inflated() && row.frame.payload_bytes > max_inflated_record_bytes();
}

Error inflated_too_far(const Row& row) {
  std::string what = describe(row);
  what[0] = 'R';
  return Error(ErrorKind::memory,
               what + ", of " + std::to_string(row.frame.payload_bytes) +
                   " bytes. Records of compressed shards may have " +
                   std::to_string(max_inflated_record_bytes()) +
                   " bytes. If the record is real, allow more with TFRFAST_MAX_RECORD_BYTES.",
               {row.shard->file->path(), static_cast<std::int64_t>(row.number),
                static_cast<std::int64_t>(row.frame.offset)});
}

}  // namespace

void make_space(std::span<const Row> rows, RecordBatch& batch) {
  const std::uint64_t max_bytes = max_memory_bytes();
  std::int64_t* const offsets = batch.offsets();
  std::uint64_t total = 0;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const std::uint64_t bytes = rows[row].frame.payload_bytes;
    if (is_inflated_too_far(rows[row])) throw inflated_too_far(rows[row]);
    if (bytes > max_bytes - total) throw too_large(rows);
    total += bytes;
    offsets[row + 1] = static_cast<std::int64_t>(total);
  }
  try {
    batch.allocate_data();
  } catch (const std::bad_alloc&) {
    throw too_large(rows);
  }
}

void check_space(const Row& row) {
  if (is_inflated_too_far(row)) throw inflated_too_far(row);
  if (row.frame.payload_bytes > max_memory_bytes()) throw too_large({&row, 1});
}

}  // namespace tfrfast
