// The seek points of a compressed shard as a section of its index.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/index/index_bytes.h"
#include "core/index/index_format.h"

namespace tfrfast {

// Makes the section's bytes, and stores the CRC-32C of the header and entries in `crc`. Throws
// Error stale_index if the points lie in an index file that can no longer be read.
std::vector<std::uint8_t> seek_section_of(const SeekPoints& points, std::uint32_t* crc);

// Loads the points of a section whose checksum must be `crc`. Null if the points cannot belong to
// such a shard.
std::shared_ptr<const SeekPoints> load_seek_section(const std::shared_ptr<const IndexBytes>& bytes,
                                                    const Section& section, std::uint32_t crc,
                                                    const ShardFacts& facts);

}  // namespace tfrfast
