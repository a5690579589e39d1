// The processes that are fetching an object's pages, according to the object's log.
#pragma once

#include <cstdint>
#include <map>

#include "core/storage/cache/cache_log.h"

namespace tfrfast {

// Guarded by cache_mutex(). A claim ends when its pages are kept or released, when its process is
// gone, or after half a minute. Of two claims of a page, the claim with the earlier line counts.
class PageClaims {
 public:
  PageClaims();

  // Make lines of this object in this process. A forked child is another process.
  CacheLine claim_line(std::uint64_t block, PageMask pages) const noexcept;
  CacheLine release_line(std::uint64_t block, PageMask pages) const noexcept;

  // Take the lines of the log, in order.
  void take_claim(const CacheLine& line);
  void take_release(const CacheLine& line) noexcept;
  void take_kept(const CacheLine& line) noexcept;

  bool is_empty() const noexcept { return claims_.empty(); }
  // The pages of a block that any process is fetching, and the pages that this object is fetching.
  PageMask of_all(std::uint64_t block) const noexcept;
  PageMask own(std::uint64_t block) const noexcept;

 private:
  struct Claim {
    std::uint32_t process = 0;
    std::uint32_t claimer = 0;
    std::uint32_t ticks = 0;
    PageMask pages = 0;
  };
  bool is_active(const Claim& claim) const noexcept;
  bool is_own(const Claim& claim) const noexcept;
  template <class Which>
  void end(const CacheLine& line, const Which& which) noexcept;

  const std::uint32_t claimer_;
  std::multimap<std::uint64_t, Claim> claims_;  // by block, earliest claim first
};

}  // namespace tfrfast
