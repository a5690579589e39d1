// Limits for compressed shards. A byte of deflate data may inflate to 1,030 bytes, so a file's size
// says little about its contents.
#pragma once

#include <cstdint>

namespace tfrfast {

// The most records of a compressed shard: $TFRFAST_MAX_RECORDS, or 2^30 if unset. Looked up once.
std::uint64_t max_inflated_records() noexcept;

// The most bytes of such a record: $TFRFAST_MAX_RECORD_BYTES, or 1 GiB if unset. Looked up once.
std::uint64_t max_inflated_record_bytes() noexcept;

}  // namespace tfrfast
