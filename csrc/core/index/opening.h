// Opens a shard together with a fitting index.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/index/frame_walk.h"
#include "core/index/index_folders.h"
#include "core/index/shard_index.h"
#include "core/storage/storage_options.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

enum class IndexUse : std::uint8_t {
  automatic,  // use a fitting index, or build one and keep it in the cache folder
  memory,     // build an index, keep nothing
  require,    // a missing or stale index is an error; a walk may confirm an index of another state
  proven,     // like require, without a walk: an index of another state is an error
  beside,  // like proven, but ignore the user's cache: all users and machines find the same index
};

struct IndexOptions {
  IndexUse use = IndexUse::automatic;
  std::string folder;  // if not empty: the only folder in which indexes are looked up and kept,
                       // but for an index there of another state, which a walk has confirmed
  std::optional<Compression> compression;  // of the shard; empty: detect
  StorageOptions storage = {};             // options of the shard's storage, and its caches
  // If damage will be thrown anyway, the walk may stop at the damage. Such an index is not kept.
  AtDamage at_damage = AtDamage::get_over;
  // Shared by many shards, so that each folder of indexes is read once. May be null.
  std::shared_ptr<IndexFolders> folders = nullptr;
};

struct IndexedShard {
  std::shared_ptr<const StoredFile> file;   // an InflatedFile if compressed
  std::shared_ptr<const ShardIndex> index;  // null only while a shard is indexed as it is read
  bool was_built = false;
  // The file from which the index was loaded or to which it was saved; may be empty.
  std::string index_path;
};

// Opens a shard with a fitting index. If the shard was copied or touched, a walk makes another
// index for the user's cache. Skips an index that may not be believed (sidecar.h), with a warning.
// Throws Error io for the shard, stale_index under `require`. An unusable cache is not an error.
IndexedShard open_indexed(const std::string& shard_path, IoMode io, const IndexOptions& options,
                          const WalkProgress& progress = nullptr);
// Like open_indexed() above, for an open file.
IndexedShard open_indexed(const std::shared_ptr<const StoredFile>& file,
                          const IndexOptions& options, const WalkProgress& progress = nullptr);

// Detects the compression of `file`. Empty if the file does not begin like the compression
// `expected`.
std::optional<Compression> resolve_compression(const StoredFile& file,
                                               std::optional<Compression> expected);

// Returns a shard with an unexpected compression: no records, and damage from begin to end. The
// index is not kept.
IndexedShard unreadable_shard(std::shared_ptr<const StoredFile> file, Compression expected);

// Returns a fitting index from the places that open_indexed() searches. Null if none fits without a
// walk.
std::shared_ptr<const ShardIndex> find_index(const StoredFile& file, Compression compression,
                                             const IndexOptions& options);

// Returns the file that the index's offsets refer to: `file` itself or, if compressed, the inflated
// file. `options` may name a cache for the inflated file's Mirror.
std::shared_ptr<const StoredFile> as_indexed(std::shared_ptr<const StoredFile> file,
                                             const ShardIndex& index,
                                             const StorageOptions& options = {});

// Keeps an index in the user's cache, if the cache may be used.
void keep_in_cache(const ShardIndex& index, const std::string& shard_path) noexcept;

// Makes the index of a whole walk of `file`. `settled` is the result of await_settled() before the
// walk.
std::shared_ptr<const ShardIndex> index_of(const StoredFile& file, Compression compression,
                                           WalkedFrames walk, bool settled);

// Builds the index of a shard and saves it in the folder of `options`. Without a folder, saves it
// in the sibling folder or, for an object, in the user's cache. Unless `force`, keeps a fitting
// index that exists in the folder. Not flushed: the caller compacts the index after the last shard.
// Damage is not an error. Returns the same as open_indexed(). Throws Error io.
IndexedShard build_index(const std::shared_ptr<const StoredFile>& file,
                         const IndexOptions& options = {}, bool force = false,
                         const WalkProgress& progress = nullptr);
inline IndexedShard build_index(const std::string& shard_path, const std::string& folder,
                                bool force) {
  return build_index(StoredFile::open(shard_path), {IndexUse::automatic, folder, {}}, force);
}

// Copies the indexes of these shards from the file `index` to the user's cache. Another process
// wrote the file with build_index() and a folder. Throws Error io and stale_index.
void cache_indexes(const std::vector<std::string>& urls, const std::string& index);

// Keeps the index of an object in `folder` and in the user's cache. `shard` is the object itself,
// or the shard whose bytes were uploaded as the object. A shared folder may serve many data
// folders. Returns the path of the file. Throws Error io, and stale_index if the object's size
// differs from the shard's.
std::string save_index_of_object(const std::shared_ptr<const StoredFile>& object,
                                 const IndexedShard& shard, const std::string& folder,
                                 bool folder_is_shared);

}  // namespace tfrfast
