// Reads frames from shards into a batch. Frames are copied first and verified in the copy, so the
// used bytes are the verified bytes even if the file changes meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/error.h"
#include "core/index/shard_set.h"
#include "core/read/record_batch.h"

namespace tfrfast {

// In compressed shards, every mode checks both CRCs, because the inflated bytes depend on the
// index, too.
enum class Verify : std::uint8_t {
  full,    // both CRCs
  header,  // the length's CRC, and the length against the index
};

// A record to read, and its indexed place.
struct Row {
  const IndexedShard* shard = nullptr;
  std::uint64_t number = 0;  // within the shard
  std::uint64_t record = 0;  // within the reader
  Frame frame;
};

// A row that could not be delivered. Only damage can be skipped: a failing disk or a stale index
// cannot.
struct BadRow {
  std::size_t row = 0;  // in the batch
  Error error;
  bool is_damage = false;
  // The row was not tried, because reading another row from a remote storage had failed. The failed
  // row has the error, and this row's error is empty.
  bool is_untried = false;
  // Of damage, from the place in the error on. 0: the row's whole frame.
  std::uint64_t damaged_bytes = 0;
};

enum class AtBadRow : std::uint8_t { stop, go_on };

// Fills rows [first_row, first_row + rows.size()) of `batch`, whose offsets must be set and whose
// data must be allocated. Returns the bad rows, in order. All other rows were read and verified.
// With `stop`, returns at most one bad row, and later rows are undefined. Throws only
// std::bad_alloc.
std::vector<BadRow> read_frames(std::span<const Row> rows, Verify verify, AtBadRow at_bad_row,
                                const RecordBatch& batch, std::size_t first_row);

// Like read_frames() above, for rows in another order than the batch's: rows[i] goes to row
// batch_rows[i]. Returns bad rows in the order of `rows`.
std::vector<BadRow> read_frames(std::span<const Row> rows, std::span<const std::size_t> batch_rows,
                                Verify verify, AtBadRow at_bad_row, const RecordBatch& batch);

// The advice on skipping in an error about a damaged record.
enum class SkipAdvice : std::uint8_t {
  try_it,       // says that damaged records can be skipped
  not_for_one,  // says that damaged records are skipped, but not when a single record is requested
};

// Reads one frame's payload into `out`, which must have space for the payload. Throws the Error
// that read_frames() would return. `batch_bytes` is the size of the batch that the payload joins,
// if any.
void read_frame(const Row& row, Verify verify, SkipAdvice advice, std::uint8_t* out,
                std::uint64_t batch_bytes = 0);

}  // namespace tfrfast
