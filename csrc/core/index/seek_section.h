// The seek points of a compressed shard as a section of its index.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/index/index_bytes.h"
#include "core/index/index_format.h"

namespace tfrfast {

// The section's bytes. Stores the CRC-32C of its header and entries in `crc`. Throws Error
// stale_index if the points lie in an index file that can no longer be read.
std::vector<std::uint8_t> seek_section_of(const SeekPoints& points, std::uint32_t* crc);

// The points of a section of `bytes` whose `crc` is what it should be. Null if they cannot belong
// to such a shard.
std::shared_ptr<const SeekPoints> load_seek_section(const std::shared_ptr<const IndexBytes>& bytes,
                                                    const Section& section, std::uint32_t crc,
                                                    const ShardFacts& facts);

}  // namespace tfrfast
