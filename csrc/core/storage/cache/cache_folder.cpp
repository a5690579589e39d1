#include "core/storage/cache/cache_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iterator>
#include <string_view>

#include "core/base/error.h"
#include "core/base/fork.h"
#include "core/base/hashing.h"
#include "core/base/warnings.h"
#include "core/storage/cache/cached_object.h"
#include "core/storage/local/folders.h"
#include "core/storage/local/system_calls.h"
#include "core/storage/local/users.h"

namespace tfrfast {
namespace {

// A process counts the files again after writing this part of the limit.
constexpr std::uint64_t kUncountedParts = 256;
// The part of the limit, and the most bytes, that are made free at a time.
constexpr std::uint64_t kFreedParts = 64;
constexpr std::uint64_t kMaxFreedBytes = std::uint64_t{1} << 30;

// The folder and its parent.
constexpr std::uint64_t kEmptyBytes = 8 << 10;

constexpr std::int64_t kBetweenSearchesMs = 5'000;
constexpr std::int64_t kBrokenMs = 60'000;
// Locks are held briefly. Do not wait longer for a process that was stopped while it held a lock.
constexpr int kMaxWaitMs = 500;

std::atomic<std::size_t> sets_held{0};
constinit std::mutex the_mutex;
[[maybe_unused]] const int kCachesAreGuarded = make_fork_wait_for<cache_mutex>();

using FolderKey = std::pair<std::string, std::uint64_t>;
std::map<FolderKey, std::weak_ptr<CacheFolder>>& known_folders() {
  static auto* const known = new std::map<FolderKey, std::weak_ptr<CacheFolder>>;
  return *known;
}

std::int64_t steady_ms() noexcept {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::int64_t written_ns(const struct stat& status) noexcept {
#if defined(__linux__)
  return std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
#else
  return std::int64_t{status.st_mtime} * 1'000'000'000;
#endif
}

std::string hex(std::uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

// Any other name, such as ".", does not belong to a cache.
bool is_ours(const std::string& name) {
  return name.size() == 16 && name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// POSIX does not fix the unit of st_blocks. All systems use 512 bytes.
std::uint64_t disk_bytes_of(const struct stat& status) noexcept {
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

int open_set(int root, const std::string& name) noexcept {
  return open_below(root, name, O_RDONLY | O_DIRECTORY);
}

// Calls action(name, status) for the sets of a cache, or the files of a set.
template <class Action>
void for_entries(int root, const std::string& folder, const Action& action) {
  const int opened = open_set(root, folder);
  const auto listing = std::unique_ptr<DIR, int (*)(DIR*)>(::fdopendir(opened), ::closedir);
  if (listing == nullptr) {
    if (opened >= 0) ::close(opened);
    return;
  }
  while (const dirent* const entry = ::readdir(listing.get())) {
    struct stat status;
    if (is_ours(entry->d_name) &&
        ::fstatat(opened, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
      action(entry->d_name, status);
    }
  }
}

// Removes a set that no process uses. Returns the number of freed bytes.
std::uint64_t remove_set(int root, const std::string& name) {
  const FileDescriptor folder(open_set(root, name));
  if (folder.get() < 0 || lock_within(folder.get(), OpenLock::alone, 0) != 0) return 0;
  std::uint64_t freed = 0;
  for_entries(root, name, [&](const char* file, const struct stat& status) {
    if (::unlinkat(folder.get(), file, 0) == 0) freed += disk_bytes_of(status);
  });
  ::unlinkat(root, name.c_str(), AT_REMOVEDIR);
  unlock(folder.get());  // a child forked meanwhile has the folder open, too
  return freed;
}

// Whether a cache may work in the folder at another time.
bool may_pass(const Error& error) {
  constexpr int kPassing[] = {ENOSPC, EDQUOT, EROFS, EIO, EAGAIN, ENFILE, EMFILE, ENOMEM};
  return std::find(std::begin(kPassing), std::end(kPassing), error.system_error()) !=
         std::end(kPassing);
}

// Throws Error io for an unsuitable folder. Null, with a warning, if the cache does not work now.
std::shared_ptr<const CacheSet> hold_in(const std::string& folder, std::uint64_t limit_bytes,
                                        const std::string& url, const std::string& place) {
  if (folder.empty()) return nullptr;
  try {
    return CacheSet::hold(CacheFolder::open(folder, limit_bytes), url, place);
  } catch (const Error& error) {
    if (!may_pass(error)) throw;
    warn_once("cache " + folder + " " + std::to_string(error.system_error()),
              error.message() + " Everything is fetched or inflated again meanwhile.");
    return nullptr;
  }
}

}  // namespace

std::mutex& cache_mutex() noexcept {
  return the_mutex;
}

int open_below(int folder, const std::string& name, int flags, unsigned mode) noexcept {
  int opened;
  do {
    opened = ::openat(folder, name.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, mode);
  } while (opened < 0 && may_open_again());
  return opened;
}

std::shared_ptr<CacheFolder> CacheFolder::open(const std::string& folder,
                                               std::uint64_t limit_bytes) {
  const FolderKey key{folder, limit_bytes};
  {
    const std::lock_guard lock(cache_mutex());
    if (const auto known = known_folders().find(key); known != known_folders().end()) {
      // The program may have closed the folder's descriptor.
      std::shared_ptr<CacheFolder> found = known->second.lock();
      if (found != nullptr && found->descriptor() >= 0) return found;
    }
  }
  std::shared_ptr<CacheFolder> made(new CacheFolder(folder + "/v2", limit_bytes));
  made->begin();
  const std::lock_guard lock(cache_mutex());
  std::weak_ptr<CacheFolder>& known = known_folders()[key];
  std::shared_ptr<CacheFolder> found = known.lock();
  if (found != nullptr && found->descriptor() >= 0) return found;  // another thread made it first
  known = made;
  return made;
}

void CacheFolder::begin() {
  make_folders(path_, 0700);
  const int root = open_below(AT_FDCWD, path_, O_RDONLY | O_DIRECTORY);
  if (root < 0) throw_system_error(errno, "Opening the cache", path_);
  root_ = std::make_unique<const FileDescriptor>(root);
  refuse_unless_private();
  if (::faccessat(root, ".", W_OK, AT_EACCESS) != 0) why_read_only_ = errno;
  if (limit_bytes_ > 0 && may_write()) count_and_remove(0, 0);
}

// A user who can write to the folder decides what is read. Checksums do not protect against that.
void CacheFolder::refuse_unless_private() const {
  const auto refuse = [this](const std::string& why) {
    throw Error(ErrorKind::io,
                "'" + path_ + "' cannot be a cache: " + why + ", or name another folder.",
                {path_, {}, {}}, EACCES);
  };
  struct stat status;
  if (::fstat(root_->get(), &status) != 0) throw_system_error(errno, "Examining", path_);
  if (status.st_uid != this_user() && status.st_uid != 0) {
    refuse("it is not a folder of yours, but belongs to " + name_of_user(status.st_uid) +
           ". Remove it");
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    refuse("others may write to it. Take that away (`chmod go-w`)");
  }
  // A user who may write to a parent folder can put another folder in the cache's place, unless
  // only owners may rename entries of the parent.
  struct stat below = status;
  for (std::string up = ".."; ::fstatat(root_->get(), up.c_str(), &status, 0) == 0; up += "/..") {
    if (status.st_dev == below.st_dev && status.st_ino == below.st_ino) return;  // the root
    const bool others_may_write =
        (status.st_mode & S_IWOTH) != 0 ||
        ((status.st_mode & S_IWGRP) != 0 && !is_group_of_one(status.st_gid));
    if (others_may_write && (status.st_mode & S_ISVTX) == 0) {
      refuse("others may write to a folder that it lies in ('" + path_ + "/" + up +
             "'), and could put another folder in its place. Take that away (`chmod go-w`)");
    }
    below = status;
  }
}

std::uint64_t CacheFolder::free_bytes() const noexcept {
  return limit_bytes_ - std::min(limit_bytes_, used_bytes_.load());
}

std::uint64_t CacheFolder::space_for(std::uint64_t bytes) noexcept {
  if (is_broken()) return 0;
  if (!may_write()) {
    tell_of_failure(why_read_only_);
    return 0;
  }
  const std::int64_t now_ms = steady_ms();
  const bool is_short = free_bytes() < bytes && now_ms >= next_search_ms_;
  const bool is_due =
      used_bytes_ - counted_bytes_ > limit_bytes_ / kUncountedParts && now_ms >= next_count_ms_;
  if (is_short || is_due) {
    next_search_ms_ = next_count_ms_ = now_ms + kBrokenMs;  // no other thread waits for this one
    count_and_remove(bytes, std::max(bytes, std::min(limit_bytes_ / kFreedParts, kMaxFreedBytes)));
    // A search through many files is not repeated soon.
    const std::int64_t ended_ms = steady_ms(), took_ms = ended_ms - now_ms;
    next_search_ms_ = free_bytes() < bytes ? ended_ms + kBetweenSearchesMs + 50 * took_ms : 0;
    next_count_ms_ = ended_ms + 20 * took_ms;
  }
  return std::min(free_bytes(), bytes);
}

void CacheFolder::tell_of_failure(int system_error) noexcept {
  // Another process is slow, the file was removed, or memory is short: later bytes may still be
  // kept.
  if (system_error == 0 || system_error == EAGAIN || system_error == ESTALE ||
      system_error == ENOMEM) {
    return;
  }
  broken_until_ms_ = steady_ms() + kBrokenMs;
  try {
    const bool is_full = system_error == ENOSPC || system_error == EDQUOT;
    warn_once("cache " + path_,
              "The cache in '" + path_ + "' cannot be written: " + std::strerror(system_error) +
                  ". Its contents are used, and all other bytes are fetched or inflated again. " +
                  (is_full ? "Free space on that disk, or give the cache a lower limit."
                           : "Name a folder that this user may write to."));
  } catch (const std::exception&) {
    // Memory is too short for a warning.
  }
}

bool CacheFolder::is_broken() const noexcept {
  return steady_ms() < broken_until_ms_.load(std::memory_order_relaxed);
}

std::uint64_t CacheFolder::count_and_remove(std::uint64_t needed, std::uint64_t wanted) noexcept {
  struct Set {
    std::string name;
    std::int64_t opened_ns = 0;
  };
  std::uint64_t used = kEmptyBytes, freed = 0;
  const auto count = [&used](const char*, const struct stat& status) {
    used += disk_bytes_of(status);
  };
  try {
    std::vector<Set> sets;
    for_entries(root_->get(), ".", [&](const char* name, const struct stat& status) {
      used += disk_bytes_of(status);
      sets.push_back({name, written_ns(status)});
    });
    for (const Set& each : sets) for_entries(root_->get(), each.name, count);
    used_bytes_ = counted_bytes_ = used;
    if (free_bytes() >= needed) return 0;
    std::sort(sets.begin(), sets.end(),
              [](const Set& a, const Set& b) { return a.opened_ns < b.opened_ns; });
    for (const Set& each : sets) {
      if (free_bytes() >= wanted) break;
      freed += remove_set(root_->get(), each.name);
      used_bytes_ = counted_bytes_ = used - std::min(used, freed);
    }
  } catch (const std::exception&) {
    // Memory is short: the rest stays.
  }
  return freed;
}

std::uint64_t CacheFolder::clear() noexcept {
  return may_write() ? count_and_remove(UINT64_MAX, UINT64_MAX) : 0;
}

std::shared_ptr<const CacheSet> CacheSet::hold(std::shared_ptr<CacheFolder> folder,
                                               const std::string& url,
                                               const std::string& place) noexcept {
  try {
    CacheFolder& of = *folder;
    const std::string_view in_folder = std::string_view(url).substr(0, url.rfind('/') + 1);
    std::string name = hex(fnv1a(place + "\n" + std::string(in_folder)));
    {
      const std::lock_guard lock(cache_mutex());
      if (auto found = of.sets_[name].lock()) return found;
    }
    std::shared_ptr<CacheSet> made(new CacheSet(std::move(folder), name));
    if (!made->lock()) return nullptr;
    const std::lock_guard lock(cache_mutex());
    of.sets_[name] = made;
    return made;
  } catch (const std::exception&) {
    return nullptr;  // memory is short
  }
}

CacheSet::CacheSet(std::shared_ptr<CacheFolder> folder, std::string name) noexcept
    : folder_(std::move(folder)), name_(std::move(name)) {
  ++sets_held;
}

CacheSet::~CacheSet() {
  --sets_held;
}

bool CacheSet::lock() {
  const int root = folder_->descriptor();
  const std::int64_t until_ms = steady_ms() + kMaxWaitMs;
  while (steady_ms() <= until_ms) {
    if (folder_->may_write() && ::mkdirat(root, name_.c_str(), 0700) != 0 && errno != EEXIST) {
      folder_->tell_of_failure(errno);
    }
    auto opened = std::make_unique<const FileDescriptor>(open_set(root, name_));
    if (sets_held > max_descriptors() / 4) {
      warn_once("sets of caches",
                "More data sets of caches are in use than a quarter of the files that this process "
                "may open. Further data sets come from the network each time. Raise the limit of "
                "open files (`ulimit -n`).");
      return false;
    }
    if (opened->get() < 0) return false;
    if (folder_->may_write()) ::futimens(opened->get(), nullptr);  // the time of the last opening
    if (lock_within(opened->get(), OpenLock::with_others, kMaxWaitMs) != 0) return false;
    // Another process may have removed the set before the lock was taken.
    struct stat locked, named;
    if (::fstat(opened->get(), &locked) == 0 && ::fstatat(root, name_.c_str(), &named, 0) == 0 &&
        locked.st_dev == named.st_dev && locked.st_ino == named.st_ino) {
      lock_ = std::move(opened);
      return true;
    }
  }
  return false;
}

std::string CacheSet::name_of(const std::string& url) const {
  return name_ + "/" + hex(fnv1a(url));
}

std::shared_ptr<const CacheSet> hold_cached(const std::string& url, const StorageOptions& options) {
  return hold_in(options.cache_folder, options.cache_limit_bytes, url, options.place);
}

std::shared_ptr<const CacheSet> hold_inflated(const std::string& name,
                                              const StorageOptions& options, bool is_remote) {
  return hold_in(options.inflated_folder, options.inflated_limit_bytes, name,
                 is_remote ? options.place : "");
}

}  // namespace tfrfast
