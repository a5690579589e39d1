// Reads frames from shards into a batch. They are copied first, and the copy is verified, so that
// what was verified is what is used even if the file changes meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/error.h"
#include "core/index/shard_set.h"
#include "core/read/record_batch.h"

namespace tfrfast {

// For compressed shards every mode checks both CRCs, because the payload's bytes depend on the
// index, too.
enum class Verify : std::uint8_t {
  full,    // both CRCs
  header,  // the length's CRC, and the length against the index
};

// One record to read, and where the index says it is.
struct Row {
  const IndexedShard* shard = nullptr;
  std::uint64_t number = 0;  // within the shard
  std::uint64_t record = 0;  // within the reader
  Frame frame;
};

// A row that could not be delivered. Only damage can be skipped, not a failing disk or a stale
// index.
struct BadRow {
  std::size_t row = 0;  // in the batch
  Error error;
  bool is_damage = false;
  // It was not even tried, because reading another row from a far storage had failed. That row has
  // the error, and this one has an empty one.
  bool is_untried = false;
};

enum class AtBadRow : std::uint8_t { stop, go_on };

// Fills rows [first_row, first_row + rows.size()) of `batch`, whose offsets are set and whose data
// are allocated. Returns the bad rows, in order: all others were read and verified. With `stop`
// there is at most one, and the rows after it are undefined. Throws only std::bad_alloc.
std::vector<BadRow> read_frames(std::span<const Row> rows, Verify verify, AtBadRow at_bad_row,
                                const RecordBatch& batch, std::size_t first_row);

// The same for rows in another order than the batch's: rows[i] goes to row batch_rows[i]. Bad rows
// are returned in the order of `rows`.
std::vector<BadRow> read_frames(std::span<const Row> rows, std::span<const std::size_t> batch_rows,
                                Verify verify, AtBadRow at_bad_row, const RecordBatch& batch);

// Verifies frames of mapped shards in place, without a copy. The frames may change afterwards. This
// is for callers who know that the files will not, and touch the payloads outside any guard.
std::vector<BadRow> verify_mapped_frames(std::span<const Row> rows);

// What an error about a damaged record says about leaving such records out.
enum class SkipAdvice : std::uint8_t {
  try_it,       // that it is possible
  not_for_one,  // that it is being done, but not where a single record is asked for
};

// Reads one frame's payload into `out`, which has room for it. Throws the Error that read_frames
// would return. `batch_bytes` are those of the batch that it becomes part of, if any.
void read_frame(const Row& row, Verify verify, SkipAdvice advice, std::uint8_t* out,
                std::uint64_t batch_bytes = 0);

}  // namespace tfrfast
