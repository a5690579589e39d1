// The places of records as numbers in a tensor. So batches can be cut before records are read, and
// a checkpoint holds addresses instead of payloads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensorflow/kernel_call.h"
#include "tensorflow/source.h"

namespace tfrfast::tensorflow {

// A record's shard, its number in the shard, its frame's offset, and its payload's length in bytes.
inline constexpr std::size_t kAddressNumbers = 4;
// The shard number in a row without a record.
inline constexpr std::int64_t kNoRecord = -1;

// Writes outputs `first`, `first + 1` and `first + 2`: the addresses before the first error, all
// errors ("" for none), and the remaining addresses. `source` may be null if there are no
// addresses.
void write_found(KernelCall& call, int first, const Source* source, const Found& found);

// Returns the rows at these addresses, which are not trusted. Throws Error: invalid for numbers
// that are not addresses, stale_index for places outside the files.
std::vector<Row> rows_at(const Source& source, std::span<const std::int64_t> addresses);

}  // namespace tfrfast::tensorflow
