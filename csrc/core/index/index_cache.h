// Lists and prunes the user's cache of indexes. The cache has a folder for each data folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tfrfast {

struct CachedFile {
  std::string path;
  std::uint64_t bytes = 0;
  std::int64_t last_used_ns = 0;
};

// Lists the files that this user's processes have written, least recently used first. Other files
// in index_cache_folder() are neither listed nor touched: files that are not named like an index,
// that do not begin like one, or that lie elsewhere. Throws Error io if the folder cannot
// be listed.
std::vector<CachedFile> list_index_cache();

enum class FreshIndexes : std::uint8_t {
  keep,  // keep for ten minutes: the process that built them is about to use them
  remove,
};
// Removes the least recently used files until at most `max_bytes` are left. Returns the number of
// removed files. Never throws.
std::size_t prune_index_cache(std::uint64_t max_bytes, FreshIndexes fresh) noexcept;

// $TFRFAST_CACHE_BYTES, or 4 GiB if unset.
std::uint64_t index_cache_limit_bytes();

}  // namespace tfrfast
