// The indexes that opening shards has left in the user's cache, and how they go again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tfrfast {

struct CachedIndex {
  std::string path;
  std::uint64_t bytes = 0;
  std::int64_t last_used_ns = 0;
};

// Those that this user's processes have put there, least recently used first: a file that lies in
// index_cache_folder() without being named like one and beginning like one is somebody else's, and
// neither listed nor touched. Throws Error io if the folder cannot be listed.
std::vector<CachedIndex> list_index_cache();

enum class FreshIndexes : std::uint8_t {
  keep,  // for ten minutes: whoever has just built them is about to use them
  remove,
};
// Removes the least recently used until at most `max_bytes` are left; how many went. Never throws.
std::size_t prune_index_cache(std::uint64_t max_bytes, FreshIndexes fresh) noexcept;

// $TFRFAST_CACHE_BYTES, else 4 GiB.
std::uint64_t index_cache_limit_bytes();

}  // namespace tfrfast
