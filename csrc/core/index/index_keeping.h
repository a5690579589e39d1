// What is kept of a scan: the index, or the proof that one which is there fits.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/index/shard_index.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

// Keeps the index in the user's cache, if that may be written. Never fails.
void keep_in_cache(const ShardIndex& index, const std::string& shard_path) noexcept;

// Keeps there that `scanned` has proven `index`. Never fails.
void remember_proof(const ShardIndex& index, const ShardIndex& scanned,
                    const std::string& shard_path) noexcept;

// Whether an index could be saved in one of `places`, now rather than after scanning for long. The
// last one, if others' shards may have taken it, need not be the one. Throws Error io.
void check_index_places(const std::vector<std::string>& places);

// Saves an index in a folder that may keep those of many data folders, whose shards may share
// names: the first comer has the plain name, and keeps it unless its index is of no use. Where the
// index is now. Throws Error io.
std::string save_in_shared_folder(const ShardIndex& index, const std::string& folder,
                                  const std::shared_ptr<const StoredFile>& file);

}  // namespace tfrfast
