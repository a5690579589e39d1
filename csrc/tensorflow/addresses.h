// Where records lie, as numbers in a tensor. So batches can be cut before anything is read, and a
// checkpoint holds addresses instead of payloads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensorflow/kernel_call.h"
#include "tensorflow/source.h"

namespace tfrfast::tensorflow {

// A record's shard, its number there, its frame's offset and its payload's length in bytes.
inline constexpr std::size_t kAddressNumbers = 4;
// In place of the shard, in a row that stands for no record.
inline constexpr std::int64_t kNoRecord = -1;

// Outputs `first`, `first + 1` and `first + 2`: the addresses before the first error, all errors
// ("" for none), and the other addresses. `source` may be null if there are none.
void write_found(KernelCall& call, int first, const Source* source, const Found& found);

// The records of these addresses, which are not trusted. Throws Error: invalid for numbers that are
// not addresses, stale_index for places that the files do not have.
std::vector<Row> rows_at(const Source& source, std::span<const std::int64_t> addresses);

}  // namespace tfrfast::tensorflow
