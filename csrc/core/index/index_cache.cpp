#include "core/index/index_cache.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/index/index_file.h"
#include "core/index/index_places.h"
#include "core/storage/local/folders.h"
#include "core/storage/local/users.h"

namespace tfrfast {
namespace {

constexpr std::uint64_t kDefaultCacheBytes = std::uint64_t{4} << 30;
constexpr std::int64_t kFreshSeconds = 600;

// True for names that cached_index_path() makes, <16 hex digits>-<shard name>.index, and for
// temporary names, which killed processes leave.
bool is_named_like_ours(std::string_view name) {
  if (name.starts_with(".tmp-")) return true;
  constexpr std::string_view kSuffix = ".index";
  constexpr std::size_t kDigits = 16;
  return name.size() > kDigits + kSuffix.size() && name.ends_with(kSuffix) &&
         name[kDigits] == '-' &&
         name.substr(0, kDigits).find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

struct Candidate {
  CachedIndex index;
  std::int64_t written_s = 0;
};

// This user's files that are named like an index, least recently used first.
std::vector<Candidate> list_candidates() {
  std::vector<Candidate> found;
  const std::string folder = index_cache_folder();
  if (folder.empty()) return found;
  std::vector<std::string> names;
  try {
    names = list_folder(folder);
  } catch (const Error& error) {
    if (error.system_error() == ENOENT) return found;
    throw;
  }
  for (const std::string& name : names) {
    if (!is_named_like_ours(name)) continue;
    const std::string path = folder + "/" + name;
    const NameStatus status = look_at_name(path);
    if (status.kind != NameKind::file || status.owner != this_user()) continue;
    found.push_back({{path, status.bytes, status.used_s * 1'000'000'000}, status.written_s});
  }
  std::sort(found.begin(), found.end(), [](const Candidate& a, const Candidate& b) {
    return a.index.last_used_ns != b.index.last_used_ns
               ? a.index.last_used_ns < b.index.last_used_ns
               : a.index.path < b.index.path;
  });
  return found;
}

// After a clock was set back, older files seem to come from the future.
bool is_fresh(const Candidate& candidate) {
  using std::chrono::system_clock;
  const std::int64_t age_s = system_clock::to_time_t(system_clock::now()) - candidate.written_s;
  return age_s > -kFreshSeconds && age_s < kFreshSeconds;
}

}  // namespace

std::vector<CachedIndex> list_index_cache() {
  std::vector<CachedIndex> found;
  for (Candidate& each : list_candidates()) {
    if (begins_like_index(each.index.path)) found.push_back(std::move(each.index));
  }
  return found;
}

std::size_t prune_index_cache(std::uint64_t max_bytes, FreshIndexes fresh) noexcept {
  std::size_t removed = 0;
  try {
    const std::vector<Candidate> candidates = list_candidates();
    std::uint64_t total = 0;
    for (const Candidate& each : candidates) total = add_or_max(total, each.index.bytes);
    for (const Candidate& each : candidates) {
      if (total <= max_bytes) break;
      if (fresh == FreshIndexes::keep && is_fresh(each)) continue;
      total -= std::min(total, each.index.bytes);
      // Checked last, because it opens the file, and there may be very many.
      if (!begins_like_index(each.index.path)) continue;
      if (remove_file(each.index.path)) ++removed;
    }
  } catch (const std::exception&) {
    // Another process prunes as well, or the folder is gone.
  }
  return removed;
}

std::uint64_t index_cache_limit_bytes() {
  const char* const text = std::getenv("TFRFAST_CACHE_BYTES");
  if (text == nullptr || *text == '\0') return kDefaultCacheBytes;
  char* end = nullptr;
  const unsigned long long bytes = std::strtoull(text, &end, 10);
  return *end != '\0' ? kDefaultCacheBytes : bytes;
}

}  // namespace tfrfast
