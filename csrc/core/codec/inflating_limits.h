// Bounds for what compressed shards may claim. Deflate makes up to 1,030 bytes of one, so the size
// of such a file says little about what it holds.
#pragma once

#include <cstdint>

namespace tfrfast {

// How many records a compressed shard may have: $TFRFAST_MAX_RECORDS, else 2^30. Looked up once.
std::uint64_t max_inflated_records() noexcept;

// How many bytes a record of one may have: $TFRFAST_MAX_RECORD_BYTES, else 1 GiB. Looked up once.
std::uint64_t max_inflated_record_bytes() noexcept;

}  // namespace tfrfast
