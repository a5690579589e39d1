// The index as a file; docs/index-format.md describes it byte by byte.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/index/shard_index.h"
#include "core/storage/publication.h"

namespace tfrfast {

// Appends the whole index. The caller commits the file. Throws Error io.
void write_index(const ShardIndex& index, Publication& file);

// Publishes it as `path`, so that readers see a whole index or none. Throws Error io.
void save_index(const ShardIndex& index, const std::string& path, bool durable,
                Existing existing = Existing::replace);

// Maps `path`, or reads it if it is small. Null if there is no such file. Throws Error stale_index
// if it is not a whole index of a known version that covers all of its shard, io if it cannot be
// read. ShardIndex checks the offsets later, page by page. Stores who may
// write the file in `writers`.
std::shared_ptr<const ShardIndex> load_index(const std::string& path, Writers* writers = nullptr,
                                             const std::string& access = "");

// Whether the file, which must not be a link, begins like an index of any version or a proof. This
// does not count as a use. Never throws.
bool begins_like_index(const std::string& path) noexcept;

}  // namespace tfrfast
