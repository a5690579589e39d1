#include "core/storage/cache/page_claims.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
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

std::uint32_t this_process() noexcept {
  return static_cast<std::uint32_t>(process_number());
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

}  // namespace

PageClaims::PageClaims() : claimer_(make_claimer()) {}

CacheLine PageClaims::claim_line(std::uint64_t block, PageMask pages) const noexcept {
  return {static_cast<std::uint32_t>(block),
          pages,
          CacheLineKind::claimed,
          this_process(),
          claimer_,
          now_ticks(),
          0};
}

CacheLine PageClaims::release_line(std::uint64_t block, PageMask pages) const noexcept {
  return {static_cast<std::uint32_t>(block),
          pages,
          CacheLineKind::released,
          this_process(),
          claimer_,
          0,
          0};
}

void PageClaims::take_claim(const CacheLine& line) {
  Claim claim{line.first, line.second, line.third, line.pages};
  end(line, [this](const Claim& each) { return !is_active(each); });
  claim.pages &= static_cast<PageMask>(~of_all(line.block));
  if (claim.pages != 0) claims_.emplace(line.block, claim);
}

void PageClaims::take_release(const CacheLine& line) noexcept {
  end(line, [&line](const Claim& each) {
    return each.process == line.first && each.claimer == line.second;
  });
}

void PageClaims::take_kept(const CacheLine& line) noexcept {
  end(line, [](const Claim&) { return true; });
}

// Removes the line's pages from the claims of its block for which which(claim) is true.
template <class Which>
void PageClaims::end(const CacheLine& line, const Which& which) noexcept {
  const auto [begin, stop] = claims_.equal_range(line.block);
  for (auto each = begin; each != stop;) {
    Claim& claim = each->second;
    if (which(claim)) claim.pages &= static_cast<PageMask>(~line.pages);
    each = claim.pages == 0 ? claims_.erase(each) : std::next(each);
  }
}

bool PageClaims::is_active(const Claim& claim) const noexcept {
  if (now_ticks() - claim.ticks > kMaxClaimTicks) return false;
  if ((claim.claimer ^ claimer_) >> 16 != 0) return true;  // the process number has no meaning here
  return ::kill(static_cast<pid_t>(claim.process), 0) == 0 || errno != ESRCH;
}

bool PageClaims::is_own(const Claim& claim) const noexcept {
  return claim.claimer == claimer_ && claim.process == this_process();
}

PageMask PageClaims::of_all(std::uint64_t block) const noexcept {
  PageMask pages = 0;
  const auto [begin, stop] = claims_.equal_range(block);
  for (auto each = begin; each != stop; ++each) {
    if (is_active(each->second)) pages |= each->second.pages;
  }
  return pages;
}

PageMask PageClaims::own(std::uint64_t block) const noexcept {
  PageMask pages = 0;
  const auto [begin, stop] = claims_.equal_range(block);
  for (auto each = begin; each != stop; ++each) {
    if (is_own(each->second)) pages |= each->second.pages;
  }
  return pages;
}

}  // namespace tfrfast
