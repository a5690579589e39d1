// The files that opening shards has left in the user's cache, and their removal: in a folder for
// each data folder, its index, and proofs that an index elsewhere fits.
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

// The files that this user's processes have put there, least recently used first. Other files in
// index_cache_folder(), which are not named like an index or a proof, do not begin like one, or lie
// elsewhere, are neither listed nor touched. Throws Error io if the folder cannot be listed.
std::vector<CachedFile> list_index_cache();

enum class FreshIndexes : std::uint8_t {
  keep,  // for ten minutes: the process that built them is about to use them
  remove,
};
// Removes the least recently used until at most `max_bytes` are left. Returns how many were
// removed. Never throws.
std::size_t prune_index_cache(std::uint64_t max_bytes, FreshIndexes fresh) noexcept;

// $TFRFAST_CACHE_BYTES, else 4 GiB.
std::uint64_t index_cache_limit_bytes();

}  // namespace tfrfast
