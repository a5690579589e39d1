// The sections of a shard's index: damage, offsets and seek points, one after another. A file of
// one shard's index and the index of a whole folder hold the same sections.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/index/index_bytes.h"
#include "core/index/index_format.h"
#include "core/index/shard_index.h"

namespace tfrfast {

struct IndexSections {
  ShardEntry shard = {};
  std::vector<std::uint8_t> bytes;  // all of them
};

// The entry's places are those of sections that begin at byte `begin`.
IndexSections sections_of(const ShardIndex& index, std::uint64_t begin);

// The index whose sections lie in `bytes` where `shard` says. `checksum` is what the index calls
// its own. Throws Error stale_index if they are damaged or do not cover all of the shard; the
// offsets are checked later, page by page.
std::shared_ptr<const ShardIndex> load_sections(const std::shared_ptr<const IndexBytes>& bytes,
                                                const ShardEntry& shard, std::uint32_t checksum);

}  // namespace tfrfast
