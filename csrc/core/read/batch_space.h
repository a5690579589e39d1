// Allocates memory for payloads whose lengths come from a file.
#pragma once

#include <span>

#include "core/base/error.h"
#include "core/read/frame_reader.h"
#include "core/read/record_batch.h"

namespace tfrfast {

// Sets the offsets of `batch`, which must have as many rows, and allocates its data. If the
// payloads exceed memory, throws Error memory, which names the sum of all payloads and the largest
// record. Lengths from a file may have any value, so sums are checked for overflow. A record of a
// compressed shard must not exceed max_inflated_record_bytes() either.
void make_space(std::span<const Row> rows, RecordBatch& batch);

// Throws the Error of make_space() if memory cannot hold the payload of `row`.
void check_space(const Row& row);

// Returns the Error that make_space() throws.
Error too_large(std::span<const Row> rows);

}  // namespace tfrfast
