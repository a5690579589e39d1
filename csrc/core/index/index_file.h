// The index as a file; docs/index-format.md describes it byte by byte.
#pragma once

#include <memory>
#include <string>

#include "core/base/publish.h"
#include "core/index/shard_index.h"

namespace tfrfast {

// Appends the whole index; committing it is the caller's. Throws Error io.
void write_index(const ShardIndex& index, PublishedFile& file);

// Publishes it as `path`, so that readers see a whole index or none. Throws Error io.
void save_index(const ShardIndex& index, const std::string& path, bool durable,
                Existing existing = Existing::replace);

// Maps `path` (a small one is read). Null if there is no such file. Throws Error stale_index if it
// is not a whole index of a known version, io if it cannot be read. Offsets are checked later,
// block by block, by ShardIndex.
std::shared_ptr<const ShardIndex> load_index(const std::string& path);

}  // namespace tfrfast
