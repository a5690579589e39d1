// Indexes of version 3, with 8 bytes for each offset. They are read, but no longer written.
#pragma once

#include <cstdint>
#include <memory>

#include "core/index/index_bytes.h"
#include "core/index/shard_index.h"

namespace tfrfast {

// Headers of both versions have one size, and begin and end alike: magic, version; CRC-32C of the
// rest.
inline constexpr std::uint32_t kOldIndexVersion = 3;

// Checks and packs all of its offsets. `bytes` begin with a header of that version whose checksum
// is right. Throws Error stale_index.
std::shared_ptr<const ShardIndex> load_old_index(const std::shared_ptr<const IndexBytes>& bytes);

}  // namespace tfrfast
