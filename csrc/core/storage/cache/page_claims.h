// Who is fetching which pages of an object, as the lines of its log say.
#pragma once

#include <cstdint>
#include <map>

#include "core/storage/cache/cache_log.h"

namespace tfrfast {

// Not safe from several threads: cache_mutex() guards it. A claim ends when its pages are kept or
// released, when its process is gone, or after half a minute. Of two claims of a page, the one
// whose line came first counts.
class PageClaims {
 public:
  PageClaims();

  // Those of this object, in this process. A forked child is another process.
  CacheLine claim_line(std::uint64_t block, PageMask pages) const noexcept;
  CacheLine release_line(std::uint64_t block, PageMask pages) const noexcept;

  // Lines of the log, in its order.
  void take_claim(const CacheLine& line);
  void take_release(const CacheLine& line) noexcept;
  void take_kept(const CacheLine& line) noexcept;

  bool is_empty() const noexcept { return claims_.empty(); }
  // Pages of a block that anybody is fetching, or this object.
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
  std::multimap<std::uint64_t, Claim> claims_;  // by block, the first one first
};

}  // namespace tfrfast
