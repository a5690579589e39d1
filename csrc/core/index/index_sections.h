// The sections of a shard's index: damage, offsets and seek points, one after another.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/index/index_bytes.h"
#include "core/index/index_format.h"
#include "core/index/shard_index.h"

namespace tfrfast {

struct IndexSections {
  ShardEntry shard = {};            // its places count from the beginning of the sections
  std::vector<std::uint8_t> bytes;  // all of them
};

IndexSections sections_of(const ShardIndex& index);

// The index whose sections lie in `bytes` where `shard` says. `checksum` is what the index calls
// its own. Throws Error stale_index if they are damaged or do not cover all of the shard; the
// offsets are checked later, page by page.
std::shared_ptr<const ShardIndex> load_sections(const std::shared_ptr<const IndexBytes>& bytes,
                                                const ShardEntry& shard, std::uint32_t checksum);

}  // namespace tfrfast
