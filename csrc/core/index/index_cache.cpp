#include "core/index/index_cache.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/index/index_places.h"
#include "core/storage/local/folder_lock.h"
#include "core/storage/local/folders.h"
#include "core/storage/local/sidecar.h"
#include "core/storage/local/users.h"

namespace tfrfast {
namespace {

constexpr std::uint64_t kDefaultCacheBytes = std::uint64_t{4} << 30;
constexpr std::int64_t kFreshSeconds = 600;

struct Candidate {
  CachedFile file;
  std::int64_t written_s = 0;
};

std::vector<std::string> names_in(const std::string& folder) {
  try {
    return list_folder(folder);
  } catch (const Error& error) {
    if (error.system_error() == ENOENT) return {};  // another process has removed the folder
    throw;
  }
}

// Whether the name is a name that tfrfast's processes give, or leave behind if killed.
bool is_named_like_ours(const std::string& name) {
  return is_folder_index(name) || name.starts_with(".tmp-");
}

bool begins_like_ours(const std::string& path) noexcept {
  char bytes[kBeginningBytes];
  return peek(path, bytes, sizeof bytes) && std::memcmp(bytes, kFolderMagic, sizeof bytes) == 0;
}

// This user's files with such names, least recently used first.
std::vector<Candidate> list_candidates() {
  std::vector<Candidate> found;
  const std::string cache = index_cache_folder();
  if (cache.empty()) return found;
  for (const std::string& folder_name : names_in(cache)) {
    const std::string folder = cache + "/" + folder_name;
    if (!is_cached_folder(folder_name) || look_at_name(folder).kind != NameKind::folder) continue;
    for (const std::string& name : names_in(folder)) {
      if (!is_named_like_ours(name)) continue;
      const std::string path = folder + "/" + name;
      const NameStatus status = look_at_name(path);
      if (status.kind != NameKind::file || status.owner != this_user()) continue;
      found.push_back({{path, status.bytes, status.used_s * 1'000'000'000}, status.written_s});
    }
  }
  std::sort(found.begin(), found.end(), [](const Candidate& a, const Candidate& b) {
    return a.file.last_used_ns != b.file.last_used_ns ? a.file.last_used_ns < b.file.last_used_ns
                                                      : a.file.path < b.file.path;
  });
  return found;
}

// Removes an empty folder, unless a process is about to add a file.
void remove_if_empty(const std::string& folder) {
  const FolderLock lock(folder, 0);
  if (lock.is_held()) remove_folder(folder);
}

// After a clock was set back, older files seem to come from the future.
bool is_fresh(const Candidate& candidate) {
  using std::chrono::system_clock;
  const std::int64_t age_s = system_clock::to_time_t(system_clock::now()) - candidate.written_s;
  return age_s > -kFreshSeconds && age_s < kFreshSeconds;
}

}  // namespace

std::vector<CachedFile> list_index_cache() {
  std::vector<CachedFile> found;
  for (Candidate& each : list_candidates()) {
    if (begins_like_ours(each.file.path)) found.push_back(std::move(each.file));
  }
  return found;
}

std::size_t prune_index_cache(std::uint64_t max_bytes, FreshIndexes fresh) noexcept {
  std::size_t removed = 0;
  std::set<std::string> emptied;
  try {
    const std::vector<Candidate> candidates = list_candidates();
    std::uint64_t total = 0;
    for (const Candidate& each : candidates) total = add_or_max(total, each.file.bytes);
    for (const Candidate& each : candidates) {
      if (total <= max_bytes) break;
      if (fresh == FreshIndexes::keep && is_fresh(each)) continue;
      total -= std::min(total, each.file.bytes);
      // Checked last, because the check opens the file, and there may be very many files.
      if (!begins_like_ours(each.file.path) || !remove_file(each.file.path)) continue;
      ++removed;
      emptied.insert(folder_of(each.file.path));
    }
    for (const std::string& folder : emptied) remove_if_empty(folder);
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
