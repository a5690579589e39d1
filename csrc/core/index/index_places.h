// Names the places where indexes are kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tfrfast {

// Beside the data, never among the data: `<data folder>.tfrfast`. Throws Error invalid without
// has_sibling_folder().
std::string sibling_index_folder(const std::string& shard_path);
// False for an object directly in a bucket. The folder beside a whole bucket would be another
// bucket, perhaps of another owner.
bool has_sibling_folder(const std::string& shard_path);
// The data folder whose sibling is `index_folder`, judging by the name. Empty if `index_folder` is
// not named like a sibling. The data folder need not exist.
std::string data_folder_of(const std::string& index_folder);
// The indexes in `folder`: this path and, for further users, `<folder>/index-<number of the user>`.
std::string folder_index_path(const std::string& folder);
bool is_folder_index(std::string_view file_name);
// The index in `folder` that this user's processes write to.
std::string own_index_path(const std::string& folder);

// The place of a shard's index in a folder's index.
struct IndexPlace {
  std::string folder;
  std::string name;  // the shard's name
  // The shard's data folder. 0 is the folder's sibling, so that both folders can be moved together.
  // Any other data folder is a hash of its resolved path.
  std::uint64_t data = 0;
  // The resolved data folder, if `folder` is the user's cache for that data folder.
  std::string cached_for = "";
};
IndexPlace sibling_place(const std::string& shard_path);
// In a folder of indexes that may serve many data folders.
IndexPlace place_in(const std::string& folder, const std::string& shard_path);
// sibling_place() if `folder` is empty, otherwise place_in().
IndexPlace place_for(const std::string& folder, const std::string& shard_path);

// The user's cache has a folder per data folder, named <16 hex digits>-<name of the data folder>.
// The digits are a hash of the data folder's resolved path.
//
// The place of a shard's index in the cache. Empty without a cache.
std::optional<IndexPlace> cached_place(const std::string& shard_path);
// The path of a shard's index in the cache. The file need not exist. Empty without a cache.
std::string cached_index_path(const std::string& shard_path);
bool is_cached_folder(std::string_view name);

// The folder `index` in $TFRFAST_CACHE_DIR, or in $XDG_CACHE_HOME/tfrfast, or in ~/.cache/tfrfast.
// Empty without a home folder: then nothing is cached. The folder is used only if it belongs to
// this user and no other user may write to it. Otherwise the user gets a warning.
std::string index_cache_folder();

// Whether the user's cache, if any, may be used. Warns if not.
bool index_cache_is_ours();

// Makes the cache's folder for a shard. False if the cache must not be used. Throws Error io.
bool make_cached_folder(const IndexPlace& cached);

}  // namespace tfrfast
