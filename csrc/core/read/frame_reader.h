// Frames out of shards into a batch: copied, then verified where they were copied to, so that what
// was verified is what is used even if the file changes meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/error.h"
#include "core/index/shard_set.h"
#include "core/read/record_batch.h"

namespace tfrfast {

// Of compressed shards, every mode checks both CRCs: that the payload's bytes are right depends on
// the index, too.
enum class Verify : std::uint8_t {
  full,    // both CRCs
  header,  // the length's CRC, and the length against the index
};

// One record to read: which, and where its index says it lies.
struct Row {
  const IndexedShard* shard = nullptr;
  std::uint64_t number = 0;  // within the shard
  std::uint64_t record = 0;  // within the reader
  Frame frame;
};

// A row that could not be delivered. Only damage can be skipped, not failing disks or stale
// indexes.
struct BadRow {
  std::size_t row = 0;  // in the batch
  Error error;
  bool is_damage = false;
};

enum class AtBadRow : std::uint8_t { stop, go_on };

// Fills rows [first_row, first_row + rows.size()) of `batch`, whose offsets are set and whose data
// are allocated. Returns the bad rows, in order; under `stop` at most one, and what lies behind it
// is undefined. Throws nothing but std::bad_alloc.
std::vector<BadRow> read_frames(std::span<const Row> rows, Verify verify, AtBadRow at_bad_row,
                                const RecordBatch& batch, std::size_t first_row);

// The same for rows in another order than the batch's: rows[i] goes to row batch_rows[i]. Of bad
// ones, whichever is met first comes first.
std::vector<BadRow> read_frames(std::span<const Row> rows, std::span<const std::size_t> batch_rows,
                                Verify verify, AtBadRow at_bad_row, const RecordBatch& batch);

// Verifies frames of mapped shards where they lie. Nothing says that they stay what they were: for
// callers who promise that the files do, and who touch the payloads outside of any guard.
std::vector<BadRow> verify_mapped_frames(std::span<const Row> rows);

// What an error about a damaged record says about leaving such records out.
enum class SkipAdvice : std::uint8_t {
  try_it,       // that it can be done
  not_for_one,  // that it is done, but not where one record is asked for
};

// One frame into `out`, which has room for its payload. Throws the Error that read_frames returns.
void read_frame(const Row& row, Verify verify, SkipAdvice advice, std::uint8_t* out);

}  // namespace tfrfast
