// Where indexes are kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tfrfast {

// Beside the data, never among it: `<data folder>.tfrfast`.
std::string sibling_index_folder(const std::string& shard_path);
// False for objects that lie directly in a bucket: the folder beside a whole bucket would be
// another bucket, which may be somebody else's.
bool has_sibling_folder(const std::string& shard_path);
// The data folder whose sibling `index_folder` is by its name; empty if it is not one. There need
// not be such a folder.
std::string data_folder_of(const std::string& index_folder);
// The indexes in `folder`: this, and where several users keep theirs, `<folder>/index-<number of
// the user>`.
std::string folder_index_path(const std::string& folder);
bool is_folder_index(std::string_view file_name);
// The one of these that this user's processes write to.
std::string own_index_path(const std::string& folder);

// Where an index of a shard is, or goes, among those of a folder.
struct IndexPlace {
  std::string folder;
  std::string name;  // the shard's
  // In which data folder the shard lies: 0 in that whose sibling `folder` is, which may be moved
  // together with it, else a hash of its resolved path.
  std::uint64_t data = 0;
  // The resolved data folder, if `folder` is the user's cache of that one alone.
  std::string cached_for = "";
};
IndexPlace sibling_place(const std::string& shard_path);
// In a folder of indexes that may serve many data folders.
IndexPlace place_in(const std::string& folder, const std::string& shard_path);
// The former if `folder` is empty.
IndexPlace place_for(const std::string& folder, const std::string& shard_path);

// The user's cache has a folder for each data folder. The data folder's resolved path determines
// its name: <16 hex digits>-<name of the data folder>.
//
// Where the cache has an index of a shard. Empty without a cache.
std::optional<IndexPlace> cached_place(const std::string& shard_path);
// The file there, whether there is one or not; empty without a cache.
std::string cached_index_path(const std::string& shard_path);
// Beside it: where a proof is kept that the index at `index_path` fits the shard.
std::string proof_path(const std::string& shard_path, const std::string& index_path);
bool is_cached_folder(std::string_view name);
bool is_proof(std::string_view file_name);

// The folder `index` in $TFRFAST_CACHE_DIR, else in $XDG_CACHE_HOME/tfrfast, else in
// ~/.cache/tfrfast. Empty if there is no home folder: then nothing is cached. It is used only if it
// belongs to this user and nobody else may write to it. Otherwise there is a warning.
std::string index_cache_folder();

// Whether the user's cache, if there is one, may be used; a warning if not.
bool index_cache_is_ours();

// Makes the cache's folder for a shard. False if the cache is not to be used. Throws Error io.
bool make_cached_folder(const IndexPlace& cached);

}  // namespace tfrfast
