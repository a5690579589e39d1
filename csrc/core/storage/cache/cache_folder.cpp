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
#include <string_view>
#include <thread>

#include "core/base/error.h"
#include "core/base/fork.h"
#include "core/base/hashing.h"
#include "core/base/warnings.h"
#include "core/crc32c/crc32c.h"
#include "core/storage/cache/cache_file.h"
#include "core/storage/local/beyond_posix.h"
#include "core/storage/local/folders.h"
#include "core/storage/local/users.h"

namespace tfrfast {
namespace {

constexpr std::uint64_t kMagic = 0x3244'4553'5543'5254;  // "TRCUSED2"
// The folder, its parent, and `used`.
constexpr std::uint64_t kEmptyBytes = 16 << 10;
// Space left free for costs that are known only afterwards, such as the filesystem's own notes of
// where the pieces of a file are.
constexpr std::uint64_t kMaxSpareBytes = 64 << 20;
constexpr std::uint64_t kSpareParts = 256;
constexpr std::uint64_t kMaxFreedBytes = std::uint64_t{1} << 30;

constexpr std::int64_t kBetweenSearchesMs = 5'000;
constexpr std::int64_t kBrokenMs = 60'000;
// Locks are held briefly. Do not wait longer for a process that was stopped while it held a lock.
constexpr std::int64_t kMaxWaitMs = 500;

constinit std::mutex the_mutex;
[[maybe_unused]] const int kCachesAreGuarded = make_fork_wait_for<cache_mutex>();

using FolderKey = std::pair<std::string, std::uint64_t>;
std::map<FolderKey, std::weak_ptr<CacheFolder>>& known_folders() {
  static auto* const known = new std::map<FolderKey, std::weak_ptr<CacheFolder>>;
  return *known;
}

// The time when a folder that failed may be tried again.
std::map<std::string, std::int64_t>& failed_until_ms() {
  static auto* const known = new std::map<std::string, std::int64_t>;
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

// Takes a lock that other processes hold briefly. False if they hold it longer, or locks do not
// work.
bool lock_soon(int descriptor, OpenLock how) noexcept {
  const std::int64_t until_ms = steady_ms() + kMaxWaitMs;
  while (try_lock_opened(descriptor, how) != 0) {
    if (errno != EWOULDBLOCK || steady_ms() > until_ms) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
  return true;
}

// Lists and closes an open folder. Empty if `folder` is not a folder.
std::vector<std::string> names_in(int folder) {
  std::vector<std::string> names;
  DIR* const listing = folder < 0 ? nullptr : ::fdopendir(folder);
  if (listing == nullptr) {
    if (folder >= 0) ::close(folder);
    return names;
  }
  while (const dirent* entry = ::readdir(listing)) names.emplace_back(entry->d_name);
  ::closedir(listing);
  return names;
}

std::uint64_t check_of(const CacheTotals& totals) noexcept {
  return crc32c(reinterpret_cast<const std::uint8_t*>(&totals), offsetof(CacheTotals, check));
}

// POSIX does not fix the unit of st_blocks. All systems use 512 bytes.
std::uint64_t disk_bytes_of(const struct stat& status) noexcept {
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

bool read_totals(int descriptor, CacheTotals& totals) noexcept {
  char bytes[sizeof totals];
  if (descriptor < 0 || ::pread(descriptor, bytes, sizeof bytes, 0) != sizeof bytes) return false;
  std::memcpy(&totals, bytes, sizeof bytes);
  return totals.magic == kMagic && totals.check == check_of(totals);
}

// Whether a cache may work in the folder at another time.
bool may_pass(const Error& error) {
  switch (error.system_error()) {
    case ENOSPC:
    case EDQUOT:
    case EROFS:
    case EIO:
    case EAGAIN:
    case ENFILE:
    case EMFILE:
    case ENOMEM:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::mutex& cache_mutex() noexcept {
  return the_mutex;
}

int open_below(int folder, const std::string& name, int flags, unsigned mode) noexcept {
  for (;;) {
    const int opened = ::openat(folder, name.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, mode);
    if (opened >= 0 || errno == EINTR) {
      if (opened >= 0) return opened;
      continue;
    }
    const int failed = errno;
    const bool gave_up_one =
        (failed == EMFILE || failed == ENFILE) && SharedDescriptors::instance().give_up_one();
    errno = failed;
    if (!gave_up_one) return -1;
  }
}

std::shared_ptr<CacheFolder> CacheFolder::open(const std::string& folder,
                                               std::uint64_t limit_bytes) {
  const FolderKey key{folder, limit_bytes};
  {
    const std::lock_guard lock(cache_mutex());
    if (const auto known = known_folders().find(key); known != known_folders().end()) {
      if (std::shared_ptr<CacheFolder> found = known->second.lock()) return found;
    }
  }
  std::shared_ptr<CacheFolder> made(new CacheFolder(folder + "/v2", limit_bytes));
  made->begin();
  const std::lock_guard lock(cache_mutex());
  std::weak_ptr<CacheFolder>& known = known_folders()[key];
  // Another thread made the folder's object first.
  if (std::shared_ptr<CacheFolder> found = known.lock()) return found;
  known = made;
  return made;
}

std::shared_ptr<CacheFolder> CacheFolder::open_if_it_works(const std::string& folder,
                                                           std::uint64_t limit_bytes) {
  {
    const std::lock_guard lock(cache_mutex());
    const auto failed = failed_until_ms().find(folder);
    if (failed != failed_until_ms().end() && steady_ms() < failed->second) return nullptr;
  }
  try {
    return open(folder, limit_bytes);
  } catch (const Error& error) {
    if (!may_pass(error)) throw;
    {
      const std::lock_guard lock(cache_mutex());
      failed_until_ms()[folder] = steady_ms() + kBrokenMs;
    }
    warn_once("cache " + folder + " " + std::to_string(error.system_error()),
              error.message() + " Everything is fetched or inflated again meanwhile.");
    return nullptr;
  }
}

void CacheFolder::begin() {
  make_folders(path_, 0700);
  const int root = open_below(AT_FDCWD, path_, O_RDONLY | O_DIRECTORY);
  if (root < 0) throw_system_error(errno, "Opening the cache", path_);
  root_ = std::make_unique<const FileDescriptor>(root);
  refuse_unless_private();
  const int used = open_below(root, "used", O_RDWR | O_CREAT, 0600);
  if (used < 0) {
    const int failed = errno;
    if (failed != EROFS && failed != EACCES && failed != EPERM) {
      throw_system_error(failed, "Opening the cache's file", path_ + "/used");
    }
    why_read_only_ = failed;
    return;
  }
  ::close(used);
  if (limit_bytes_ == 0 || totals().limit_bytes == limit_bytes_) return;
  Account account(*this);
  account.totals_.limit_bytes = limit_bytes_;
  if (account.is_open()) account.store();
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
             "'), and could put another one in its place. Take that away (`chmod go-w`)");
    }
    below = status;
  }
}

CacheTotals CacheFolder::totals() const noexcept {
  CacheTotals found;
  const int used = open_below(root_->get(), "used", O_RDONLY);
  bool is_right = false;
  // Another process may be writing the file.
  for (int i = 0; i < 3 && !is_right; ++i) is_right = read_totals(used, found);
  if (used >= 0) ::close(used);
  return is_right ? found : CacheTotals{};
}

std::uint64_t CacheFolder::usable_bytes() const noexcept {
  return limit_bytes_ - std::min(limit_bytes_ / kSpareParts, kMaxSpareBytes);
}

std::uint64_t CacheFolder::space_for(std::uint64_t bytes) noexcept {
  if (is_broken()) return 0;
  if (!may_write()) {
    tell_of_failure(why_read_only_);
    return 0;
  }
  const auto left = [this] {
    const std::uint64_t used = totals().used_bytes;
    return usable_bytes() - std::min(usable_bytes(), used);
  };
  std::uint64_t space = left();
  if (space >= bytes) return bytes;
  // One thread searches for more space. No other thread waits for the search.
  const std::int64_t now_ms = steady_ms();
  std::int64_t next_ms = next_search_ms_;
  if (now_ms >= next_ms && next_search_ms_.compare_exchange_strong(next_ms, now_ms + kBrokenMs)) {
    bool has_found = false;
    if (Account account(*this); account.is_open()) {
      const std::uint64_t somewhat_more = std::min(limit_bytes_ / 64, kMaxFreedBytes);
      remove_unused(account, std::max(bytes, somewhat_more));
      has_found = usable_bytes() - std::min(usable_bytes(), account.totals_.used_bytes) >= bytes;
    }
    // A search through many files is not repeated soon.
    const std::int64_t pause_ms = kBetweenSearchesMs + 50 * (steady_ms() - now_ms);
    next_search_ms_ = has_found ? 0 : steady_ms() + pause_ms;
    space = left();
  }
  return std::min(space, bytes);
}

CacheFolder::Account::Account(CacheFolder& folder) noexcept : folder_(folder) {
  if (!folder.may_write()) return;
  descriptor_ = open_below(folder.descriptor(), "used", O_RDWR | O_CREAT, 0600);
  if (descriptor_ < 0) return;
  is_locked_ = lock_soon(descriptor_, OpenLock::alone);
  if (!is_locked_ || read_totals(descriptor_, totals_)) return;
  // The file is new or damaged. No process writes meanwhile, so all files can be counted.
  totals_ = {kMagic, kEmptyBytes, folder.limit_bytes_, 0, 0, 0};
  folder.remove_unused(*this, 0);
}

CacheFolder::Account::~Account() {
  // A child forked meanwhile has the file open, too.
  if (is_locked_) unlock_opened(descriptor_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool CacheFolder::Account::store() noexcept {
  totals_.check = check_of(totals_);
  if (::pwrite(descriptor_, &totals_, sizeof totals_, 0) == sizeof totals_) return true;
  folder_.tell_of_failure(errno);
  return false;
}

std::uint64_t CacheFolder::Account::take(std::uint64_t bytes) noexcept {
  const std::uint64_t usable = folder_.usable_bytes();
  const std::uint64_t taken = std::min(bytes, usable - std::min(usable, totals_.used_bytes));
  totals_.used_bytes += taken;
  return store() ? taken : 0;
}

void CacheFolder::Account::settle(std::uint64_t taken, std::uint64_t used) noexcept {
  totals_.used_bytes += used - taken;
  store();
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
                  ". What it holds is used, and everything else is fetched or inflated again. " +
                  (is_full ? "Free space on that disk, or give the cache a lower limit."
                           : "Name a folder that this user may write to."));
  } catch (const std::exception&) {
    // Memory is too short for a warning.
  }
}

bool CacheFolder::is_broken() const noexcept {
  return steady_ms() < broken_until_ms_.load(std::memory_order_relaxed);
}

std::vector<CacheFolder::FoundSet> CacheFolder::find_sets() const {
  std::vector<FoundSet> sets;
  for (std::string& name : names_in(open_below(root_->get(), ".", O_RDONLY | O_DIRECTORY))) {
    struct stat status;
    if (!is_ours(name)) continue;
    const int folder = open_below(root_->get(), name, O_RDONLY | O_DIRECTORY);
    if (folder < 0 || ::fstat(folder, &status) != 0) {
      if (folder >= 0) ::close(folder);
      continue;
    }
    FoundSet set{std::move(name), written_ns(status), disk_bytes_of(status), {}};
    for (std::string& each : names_in(folder)) {
      const std::string path = set.name + "/" + each;
      if (!is_ours(each) ||
          ::fstatat(root_->get(), path.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
        continue;
      }
      // The first page of the log may come at any time.
      const std::uint64_t disk_bytes = std::max(disk_bytes_of(status), 2 * kCachePageBytes);
      set.files.push_back({std::move(each), written_ns(status), disk_bytes});
      set.disk_bytes += set.files.back().disk_bytes;
    }
    std::sort(set.files.begin(), set.files.end(),
              [](const FoundFile& a, const FoundFile& b) { return a.written_ns < b.written_ns; });
    sets.push_back(std::move(set));
  }
  std::sort(sets.begin(), sets.end(),
            [](const FoundSet& a, const FoundSet& b) { return a.last_used_ns < b.last_used_ns; });
  return sets;
}

std::uint64_t CacheFolder::remove_unused(Account& account, std::uint64_t wanted) noexcept {
  std::uint64_t freed = 0;
  try {
    const std::vector<FoundSet> sets = find_sets();
    std::uint64_t used = kEmptyBytes;
    for (const FoundSet& each : sets) used += each.disk_bytes;
    // Processes with very many sets hold this lock.
    const int all = open_below(root_->get(), ".", O_RDONLY | O_DIRECTORY);
    const bool may_remove = all >= 0 && try_lock_opened(all, OpenLock::alone) == 0;
    for (const FoundSet& each : sets) {
      if (!may_remove || freed >= wanted) break;
      freed += remove_from(each, wanted - freed, account.totals_);
    }
    if (may_remove) unlock_opened(all);
    if (all >= 0) ::close(all);
    account.totals_.used_bytes = used - freed;
  } catch (const std::exception&) {
    // Memory is short: the rest stays.
  }
  account.store();
  return freed;
}

std::uint64_t CacheFolder::remove_from(const FoundSet& set, std::uint64_t wanted,
                                       CacheTotals& totals) const {
  const int folder = open_below(root_->get(), set.name, O_RDONLY | O_DIRECTORY);
  if (folder < 0) return 0;
  const FileDescriptor closed(folder);
  if (try_lock_opened(folder, OpenLock::alone) != 0) return 0;
  std::uint64_t freed = 0;
  for (const FoundFile& each : set.files) {
    if (freed >= wanted) break;
    CacheEntry entry;
    describe_cached(folder, each.name, entry);
    if (::unlinkat(folder, each.name.c_str(), 0) != 0) continue;
    freed += each.disk_bytes;
    totals.served_bytes += entry.served_bytes;
    totals.fetched_bytes += entry.fetched_bytes;
  }
  if (::unlinkat(root_->get(), set.name.c_str(), AT_REMOVEDIR) == 0) {
    std::uint64_t of_files = 0;
    for (const FoundFile& each : set.files) of_files += each.disk_bytes;
    freed += set.disk_bytes - of_files;
  }
  unlock_opened(folder);
  return freed;
}

std::uint64_t CacheFolder::clear() noexcept {
  Account account(*this);
  return account.is_open() ? remove_unused(account, UINT64_MAX) : 0;
}

std::vector<CacheEntry> CacheFolder::entries() const {
  std::vector<CacheEntry> found;
  const int all = open_below(root_->get(), ".", O_RDONLY | O_DIRECTORY);
  const bool all_are_used = all < 0 || try_lock_opened(all, OpenLock::alone) != 0;
  if (all >= 0) ::close(all);
  for (const FoundSet& set : find_sets()) {
    const int folder = open_below(root_->get(), set.name, O_RDONLY | O_DIRECTORY);
    if (folder < 0) continue;
    const FileDescriptor closed(folder);
    const bool is_used = all_are_used || try_lock_opened(folder, OpenLock::alone) != 0;
    if (!is_used) unlock_opened(folder);
    for (const FoundFile& each : set.files) {
      CacheEntry entry;
      if (!describe_cached(folder, each.name, entry)) continue;
      entry.kept_bytes = each.disk_bytes;
      entry.last_used_s = std::max(set.last_used_ns, each.written_ns) / 1'000'000'000;
      entry.is_in_use = is_used;
      found.push_back(std::move(entry));
    }
  }
  return found;
}

// One lock for all sets, shared by all sets of this process without a lock of their own.
std::shared_ptr<const FileDescriptor> CacheFolder::hold_everything() {
  {
    const std::lock_guard lock(cache_mutex());
    if (auto held = everything_.lock()) return held;
  }
  const int all = open_below(root_->get(), ".", O_RDONLY | O_DIRECTORY);
  if (all < 0) return nullptr;
  auto made = std::make_shared<const FileDescriptor>(all);
  if (!lock_soon(all, OpenLock::with_others)) return nullptr;
  const std::lock_guard lock(cache_mutex());
  everything_ = made;
  return made;
}

std::shared_ptr<const CacheSet> CacheSet::hold(std::shared_ptr<CacheFolder> folder,
                                               const std::string& url,
                                               const std::string& place) noexcept {
  try {
    CacheFolder& of = *folder;
    if (steady_ms() < of.locks_fail_until_ms_) return nullptr;
    const std::string_view in_folder = std::string_view(url).substr(0, url.rfind('/') + 1);
    std::string name = hex(fnv1a(place + "\n" + std::string(in_folder)));
    {
      const std::lock_guard lock(cache_mutex());
      if (const auto known = of.sets_.find(name); known != of.sets_.end()) {
        if (auto found = known->second.lock()) return found;
      }
    }
    std::shared_ptr<CacheSet> made(new CacheSet(std::move(folder), name));
    if (!made->lock()) return nullptr;
    const std::lock_guard lock(cache_mutex());
    of.sets_[std::move(name)] = made;
    return made;
  } catch (const std::exception&) {
    return nullptr;  // memory is short
  }
}

bool CacheSet::lock() {
  const int root = folder_->descriptor();
  is_counted_ = folder_->sets_held_.fetch_add(1) < kMaxLocks;
  if (!is_counted_) {
    --folder_->sets_held_;
    lock_ = folder_->hold_everything();
    if (lock_ == nullptr) return false;
  }
  const std::int64_t until_ms = steady_ms() + kMaxWaitMs;
  while (steady_ms() <= until_ms) {
    if (folder_->may_write() && ::mkdirat(root, name_.c_str(), 0700) != 0 && errno != EEXIST) {
      folder_->tell_of_failure(errno);
    }
    const int opened = open_below(root, name_, O_RDONLY | O_DIRECTORY);
    if (opened < 0) return false;
    auto held = std::make_shared<const FileDescriptor>(opened);
    if (folder_->may_write()) ::futimens(opened, nullptr);  // the time of the last use
    if (!is_counted_) return true;
    if (!lock_soon(opened, OpenLock::with_others)) break;
    // Another process may have removed the set before the lock was taken.
    struct stat locked, named;
    if (::fstat(opened, &locked) == 0 && ::fstatat(root, name_.c_str(), &named, 0) == 0 &&
        locked.st_dev == named.st_dev && locked.st_ino == named.st_ino) {
      lock_ = std::move(held);
      return true;
    }
  }
  // Another process has been removing files of the set for a second. Perhaps the process was
  // stopped.
  folder_->locks_fail_until_ms_ = steady_ms() + kBrokenMs;
  return false;
}

CacheSet::~CacheSet() {
  if (is_counted_) --folder_->sets_held_;
}

std::string CacheSet::name_of(const std::string& url) const {
  return name_ + "/" + hex(fnv1a(url));
}

std::shared_ptr<const CacheSet> hold_cached(const std::string& url, const StorageOptions& options) {
  if (options.cache_folder.empty()) return nullptr;
  auto folder = CacheFolder::open_if_it_works(options.cache_folder, options.cache_limit_bytes);
  return folder == nullptr ? nullptr : CacheSet::hold(std::move(folder), url, options.place);
}

std::shared_ptr<const CacheSet> hold_inflated(const std::string& name,
                                              const StorageOptions& options, bool is_remote) {
  if (options.inflated_folder.empty()) return nullptr;
  auto folder =
      CacheFolder::open_if_it_works(options.inflated_folder, options.inflated_limit_bytes);
  if (folder == nullptr) return nullptr;
  return CacheSet::hold(std::move(folder), name, is_remote ? options.place : "");
}

}  // namespace tfrfast
