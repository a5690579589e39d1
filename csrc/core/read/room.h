// Memory for payloads whose lengths a file says.
#pragma once

#include <span>

#include "core/base/error.h"
#include "core/read/frame_reader.h"
#include "core/read/record_batch.h"

namespace tfrfast {

// Sets the offsets of `batch`, which has as many rows, and allocates its data. Throws Error memory,
// which names the sum of all payloads and the largest record, if that is more than memory can hold:
// a file may say anything, and sums of what it says may exceed every integer.
void make_room(std::span<const Row> rows, RecordBatch& batch);

// Throws the same Error if memory cannot hold the payload of `row`.
void check_room(const Row& row);

// That Error.
Error too_large(std::span<const Row> rows);

}  // namespace tfrfast
