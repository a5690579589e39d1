// A shard and an index that fits it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/index/index_folders.h"
#include "core/index/scan.h"
#include "core/index/shard_index.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

enum class IndexUse : std::uint8_t {
  automatic,  // use a fitting one, else build it and keep it in the cache folder
  memory,     // build it, keep nothing
  require,    // a missing or stale one is an error; a scan may still prove that one fits
  proven,     // the same without a scan: one that would have to be proven is an error, too
  beside,  // as proven, but one in the user's cache is none: all users and machines find the same
};

struct IndexOptions {
  IndexUse use = IndexUse::automatic;
  std::string folder;                      // if not empty: look and keep here, nowhere else
  std::optional<Compression> compression;  // what the shard is; empty: find out
  std::string access = "";                 // how to reach the shard, if it is not on this machine
  // If damage will be raised anyway, the scan may stop there. Such an index is not kept.
  AtDamage at_damage = AtDamage::get_over;
  // So that each folder of indexes is looked into once for many shards; may be null.
  std::shared_ptr<IndexFolders> folders = nullptr;
};

struct IndexedShard {
  std::shared_ptr<const StoredFile> file;   // an InflatedFile if compressed
  std::shared_ptr<const ShardIndex> index;  // null only while a shard is indexed as it is read
  bool was_built = false;
  std::string index_path;  // of the file that the index was found in or saved to; may be empty
};

// Opens a shard with an index that fits it. If an index seems not to fit because the shard was
// copied or touched, a scan proves it once, and the cache keeps the proof. An index that may not be
// believed (own_file.h) is passed over, with a warning. Throws Error
// io for the shard, stale_index under `require`. An unusable cache is not an error.
IndexedShard open_indexed(const std::string& shard_path, IoMode io, const IndexOptions& options,
                          const ScanProgress& progress = nullptr);
// The same for a file that is open.
IndexedShard open_indexed(const std::shared_ptr<const StoredFile>& file,
                          const IndexOptions& options, const ScanProgress& progress = nullptr);

// What `file` is compressed with. Empty if it does not begin like the compression `expected`.
std::optional<Compression> resolve_compression(const StoredFile& file,
                                               std::optional<Compression> expected);

// A shard that is not compressed as expected: it has no records, and all of it is damage. Its index
// is not kept.
IndexedShard unreadable_shard(std::shared_ptr<const StoredFile> file, Compression expected);

// A fitting index from where open_indexed would look for it. Null if there is none, or if only a
// scan could prove one.
std::shared_ptr<const ShardIndex> find_index(const StoredFile& file, Compression compression,
                                             const IndexOptions& options);

// What the index's offsets count in: `file` itself or, if compressed, what it inflates to.
std::shared_ptr<const StoredFile> as_indexed(std::shared_ptr<const StoredFile> file,
                                             const ShardIndex& index);

// Keeps in the user's cache what a scan of `file` has found, if the cache may be used: the proof
// that an index in the places of `options` fits or, if there is none, `scanned` itself.
void remember_scan(const std::shared_ptr<const StoredFile>& file, const ShardIndex& scanned,
                   const IndexOptions& options) noexcept;

// The index that a whole scan of `file` makes. `settled` is what await_settled() returned before
// it.
std::shared_ptr<const ShardIndex> index_of(const StoredFile& file, Compression compression,
                                           ShardScan scan, bool settled);

// Builds the index of a shard and saves it in `folder` (if empty, in the sibling folder), unless a
// fitting one is there and `force` is false. It is not flushed: the caller compacts the index when
// all shards have theirs. Returns what open_indexed would.
IndexedShard build_index(const std::string& shard_path, const std::string& folder, bool force,
                         std::optional<Compression> compression = {},
                         const ScanProgress& progress = nullptr,
                         const std::shared_ptr<IndexFolders>& folders = nullptr);

// Scans an object, even if there is an index, and keeps the result as `options` say: in their
// folder, or else in the user's cache. Damage is not an error. Throws Error io.
IndexedShard rebuild_index(const std::shared_ptr<const StoredFile>& object,
                           const IndexOptions& options, const ScanProgress& progress = nullptr);

// Keeps in the user's cache what the file `index` holds of these shards: another process has put it
// there, with rebuild_index() and a folder. Throws Error io and stale_index.
void cache_indexes(const std::vector<std::string>& urls, const std::string& index);

// Where `folder` keeps the index of an object now, which is that of `shard`: the object itself, or
// a shard whose bytes were uploaded as it. The user's cache keeps it, too. A shared folder may
// serve many data folders. Throws Error io, and stale_index if the object is not as large as the
// shard.
std::string save_index_of_object(const std::shared_ptr<const StoredFile>& object,
                                 const IndexedShard& shard, const std::string& folder,
                                 bool folder_is_shared);

}  // namespace tfrfast
