#include "core/storage/cache/page_claims.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <iterator>
#include <string>

#include "core/base/hashing.h"
#include "core/base/process.h"
#include "core/storage/local/temporary.h"

namespace tfrfast {
namespace {

constexpr std::uint32_t kMaxClaimTicks = 30 * 4;

// Quarters of a second, by a clock that all processes share.
std::uint32_t now_ticks() noexcept {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(now).count() / 250);
}

// Distinguishes the open objects of a process. The upper half is equal in all processes that see
// each other's process numbers.
std::uint32_t make_claimer() {
  static std::atomic<std::uint32_t> serial{0};
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  const std::uint64_t mixed =
      fnv1a(std::to_string(now) + " " + std::to_string(serial.fetch_add(1)));
  return static_cast<std::uint32_t>(fnv1a(scope_of_processes()) << 16) |
         static_cast<std::uint16_t>(mixed ^ mixed >> 32);
}

bool have_one_claimer(const CacheLine& a, const CacheLine& b) noexcept {
  return a.first == b.first && a.second == b.second;
}

}  // namespace

PageClaims::PageClaims() : claimer_(make_claimer()) {}

CacheLine PageClaims::line(CacheLineKind kind, std::uint64_t block, PageMask pages) const noexcept {
  return {static_cast<std::uint32_t>(block),
          pages,
          kind,
          static_cast<std::uint32_t>(process_number()),
          claimer_,
          now_ticks(),
          0};
}

void PageClaims::take(const CacheLine& line) {
  const bool is_claim = line.kind == CacheLineKind::claimed;
  PageMask claimed = is_claim ? line.pages : PageMask{0};
  const auto [begin, stop] = claims_.equal_range(line.block);
  for (auto each = begin; each != stop;) {
    CacheLine& claim = each->second;
    const bool ends = line.kind == CacheLineKind::kept || (is_claim && !is_active(claim)) ||
                      (line.kind == CacheLineKind::released && have_one_claimer(claim, line));
    if (ends) {
      claim.pages &= static_cast<PageMask>(~line.pages);
    } else {
      claimed &= static_cast<PageMask>(~claim.pages);
    }
    each = claim.pages == 0 ? claims_.erase(each) : std::next(each);
  }
  if (claimed != 0) claims_.emplace(line.block, line)->second.pages = claimed;
}

bool PageClaims::is_active(const CacheLine& claim) const noexcept {
  if (now_ticks() - claim.third > kMaxClaimTicks) return false;
  if ((claim.second ^ claimer_) >> 16 != 0) return true;  // the process number has no meaning here
  return ::kill(static_cast<pid_t>(claim.first), 0) == 0 || errno != ESRCH;
}

PageMask PageClaims::pages_of(std::uint64_t block, bool only_own) const noexcept {
  const CacheLine own = line(CacheLineKind::claimed, block, 0);
  PageMask pages = 0;
  const auto [begin, stop] = claims_.equal_range(block);
  for (auto each = begin; each != stop; ++each) {
    const CacheLine& claim = each->second;
    if (only_own ? have_one_claimer(claim, own) : is_active(claim)) pages |= claim.pages;
  }
  return pages;
}

}  // namespace tfrfast
