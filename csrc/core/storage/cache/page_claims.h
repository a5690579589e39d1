// The processes that are fetching an object's pages, according to the object's log.
#pragma once

#include <cstdint>
#include <map>

#include "core/storage/cache/cache_file.h"

namespace tfrfast {

// Guarded by cache_mutex(). A claim ends when its pages are kept or released, when its process is
// gone, or after half a minute. Of two claims of a page, the claim with the earlier line counts.
class PageClaims {
 public:
  PageClaims();

  // A line of this object in this process. A forked child is another process.
  CacheLine line(CacheLineKind kind, std::uint64_t block, PageMask pages) const noexcept;
  // Takes each line of the log, in order.
  void take(const CacheLine& line);

  // The pages of a block that any process is fetching, and the pages that this object is fetching.
  PageMask of_all(std::uint64_t block) const noexcept { return pages_of(block, false); }
  PageMask own(std::uint64_t block) const noexcept { return pages_of(block, true); }

 private:
  bool is_active(const CacheLine& claim) const noexcept;
  PageMask pages_of(std::uint64_t block, bool only_own) const noexcept;

  const std::uint32_t claimer_;
  std::multimap<std::uint64_t, CacheLine> claims_;  // by block, earliest claim first
};

}  // namespace tfrfast
