// Where indexes are kept, and whether one that is found fits its shard.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/index/scan.h"
#include "core/index/shard_index.h"
#include "core/shard/file.h"

namespace tfrfast {

enum class IndexUse : std::uint8_t {
  automatic,  // use a fitting one, else build it and keep it in the cache folder
  memory,     // build it, keep nothing
  require,    // a missing or stale one is an error
};

struct IndexOptions {
  IndexUse use = IndexUse::automatic;
  std::string folder;                      // if not empty: look and keep here, nowhere else
  std::optional<Compression> compression;  // what the shard is; empty: find out
};

// Beside the data, never among it: `<data folder>.tfrfast/<shard name>.index`.
std::string sibling_index_path(const std::string& shard_path);
// `<folder>/<shard name>.index`.
std::string index_path_in(const std::string& folder, const std::string& shard_path);
// `<folder>/<shard name>-<hash of the resolved data folder>.index`, for shards whose name in
// `folder` is taken by another one's index.
std::string second_index_path_in(const std::string& folder, const std::string& shard_path);
// In the user's cache, under a name that the shard's resolved path determines.
std::string cached_index_path(const std::string& shard_path);

// $TFRFAST_CACHE_DIR, else $XDG_CACHE_HOME/tfrfast, else ~/.cache/tfrfast; then "/index".
std::string index_cache_folder();

struct CachedIndex {
  std::string path;
  std::uint64_t bytes = 0;
  std::int64_t last_used_ns = 0;
};
std::vector<CachedIndex> list_index_cache();  // least recently used first
// Removes the least recently used until at most `most_bytes` are left; how many went. Never throws.
std::size_t prune_index_cache(std::uint64_t most_bytes) noexcept;
// $TFRFAST_CACHE_BYTES, else 4 GiB.
std::uint64_t index_cache_limit_bytes();

struct IndexedShard {
  std::shared_ptr<const ShardFile> file;    // an InflatedFile if compressed
  std::shared_ptr<const ShardIndex> index;  // null only while a shard is indexed as it is read
  bool was_built = false;
  std::string index_path;  // of the file that the index was found in or saved to; may be empty
};

// Opens a shard with an index that fits it. Throws Error: io for the shard, stale_index under
// `require`. An unusable cache is no error.
IndexedShard open_indexed(const std::string& shard_path, IoMode io, const IndexOptions& options,
                          const ScanProgress& progress = nullptr);

// What `file` is compressed with. Throws Error invalid if it cannot be what is `expected`.
Compression resolve_compression(const ShardFile& file, std::optional<Compression> expected);

// A fitting index, where open_indexed would look for it; null if there is none.
std::shared_ptr<const ShardIndex> find_index(const ShardFile& file, Compression compression,
                                             const IndexOptions& options);

// What the index's offsets count in: `file` itself or, if compressed, what it inflates to.
std::shared_ptr<const ShardFile> as_indexed(std::shared_ptr<const ShardFile> file,
                                            const ShardIndex& index);

// Keeps an index in the user's cache, if that has room and may be written.
void keep_in_cache(const ShardIndex& index, const std::string& shard_path) noexcept;

// The index that a whole scan of `file` makes.
std::shared_ptr<const ShardIndex> index_of(const ShardFile& file, Compression compression,
                                           ShardScan scan);

// Builds the index of a shard and saves it, durable, in `folder` (if empty: the sibling folder);
// unless a fitting one is there and `force` is false. Says what open_indexed would.
IndexedShard build_index(const std::string& shard_path, const std::string& folder, bool force,
                         std::optional<Compression> compression = {},
                         const ScanProgress& progress = nullptr);

// Whether `file`, as it lies on the disk, still looks like what `index` describes: its size, and
// the headers of its first, last and some other records or, if compressed, the bytes at some seek
// points; more of them if it was touched since. Every read checks its own
// record's header again, so a false yes costs an error later, never wrong bytes.
bool index_fits(const ShardIndex& index, const ShardFile& file);

}  // namespace tfrfast
