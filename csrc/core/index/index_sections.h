// The sections of a shard's index, end to end: damage, offsets and seek points.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/index/index_bytes.h"
#include "core/index/index_format.h"
#include "core/index/shard_index.h"

namespace tfrfast {

struct IndexSections {
  ShardEntry shard = {};            // places count from the beginning of the sections
  std::vector<std::uint8_t> bytes;  // of all sections
};

IndexSections sections_of(const ShardIndex& index);

// Loads the index whose sections lie in `bytes`, at the places in `shard`. Throws Error stale_index
// if a section is damaged or the sections do not cover the shard. Offsets are checked later, page
// by page.
std::shared_ptr<const ShardIndex> load_sections(const std::shared_ptr<const IndexBytes>& bytes,
                                                const ShardEntry& shard);

}  // namespace tfrfast
