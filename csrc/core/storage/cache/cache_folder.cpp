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

// False if other processes hold a conflicting lock for longer, or locks do not work.
bool lock_within(int descriptor, OpenLock how, std::int64_t max_wait_ms) noexcept {
  const std::int64_t until_ms = steady_ms() + max_wait_ms;
  while (try_lock_opened(descriptor, how) != 0) {
    if (errno != EWOULDBLOCK || steady_ms() >= until_ms) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
  return true;
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
             "'), and could put another folder in its place. Take that away (`chmod go-w`)");
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

CacheFolder::Alone::Alone(int opened, std::int64_t max_wait_ms) noexcept
    : file_(opened), is_held_(opened >= 0 && lock_within(opened, OpenLock::alone, max_wait_ms)) {}

CacheFolder::Alone::~Alone() {
  // A child forked meanwhile has the file open, too.
  if (is_held_) unlock_opened(file_.get());
}

CacheFolder::Account::Account(CacheFolder& folder) noexcept
    : folder_(folder),
      used_(
          folder.may_write() ? open_below(folder.descriptor(), "used", O_RDWR | O_CREAT, 0600) : -1,
          kMaxWaitMs) {
  if (!is_open() || read_totals(used_.descriptor(), totals_)) return;
  // The file is new or damaged. No process writes meanwhile, so all files can be counted.
  totals_ = {kMagic, kEmptyBytes, folder.limit_bytes_, 0, 0, 0};
  folder.remove_unused(*this, 0);
}

bool CacheFolder::Account::store() noexcept {
  totals_.check = check_of(totals_);
  if (::pwrite(used_.descriptor(), &totals_, sizeof totals_, 0) == sizeof totals_) return true;
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

int CacheFolder::open_set(const std::string& name) const noexcept {
  return open_below(root_->get(), name, O_RDONLY | O_DIRECTORY);
}

std::vector<CacheFolder::Found> CacheFolder::find_in(const std::string& folder) const {
  std::vector<Found> found;
  const int opened = open_set(folder);
  DIR* const listing = opened < 0 ? nullptr : ::fdopendir(opened);
  if (listing == nullptr) {
    if (opened >= 0) ::close(opened);
    return found;
  }
  const auto closed = std::unique_ptr<DIR, int (*)(DIR*)>(listing, ::closedir);
  while (const dirent* const entry = ::readdir(listing)) {
    struct stat status;
    if (!is_ours(entry->d_name) ||
        ::fstatat(opened, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
      continue;
    }
    // The first page of a file's log may be written at any time.
    const std::uint64_t least = S_ISREG(status.st_mode) ? 2 * kCachePageBytes : 0;
    found.push_back(
        {entry->d_name, written_ns(status), std::max(disk_bytes_of(status), least), {}});
  }
  std::sort(found.begin(), found.end(),
            [](const Found& a, const Found& b) { return a.written_ns < b.written_ns; });
  return found;
}

std::vector<CacheFolder::Found> CacheFolder::find_sets() const {
  std::vector<Found> sets = find_in(".");
  for (Found& each : sets) each.files = find_in(each.name);
  return sets;
}

std::uint64_t CacheFolder::remove_unused(Account& account, std::uint64_t wanted) noexcept {
  std::uint64_t freed = 0;
  try {
    const std::vector<Found> sets = find_sets();
    account.totals_.used_bytes = kEmptyBytes;
    for (const Found& set : sets) {
      account.totals_.used_bytes += set.disk_bytes;
      for (const Found& each : set.files) account.totals_.used_bytes += each.disk_bytes;
    }
    // Processes with very many sets hold this lock.
    const Alone all(open_set("."), 0);
    for (const Found& each : sets) {
      if (!all.is_held() || freed >= wanted) break;
      freed += remove_from(each, wanted - freed, account.totals_);
    }
    account.totals_.used_bytes -= freed;
  } catch (const std::exception&) {
    // Memory is short: the rest stays.
  }
  account.store();
  return freed;
}

std::uint64_t CacheFolder::remove_from(const Found& set, std::uint64_t wanted,
                                       CacheTotals& totals) const {
  const Alone folder(open_set(set.name), 0);
  if (!folder.is_held()) return 0;
  std::uint64_t freed = 0;
  for (const Found& each : set.files) {
    if (freed >= wanted) break;
    CacheEntry entry;
    describe_cached(folder.descriptor(), each.name, entry);
    if (::unlinkat(folder.descriptor(), each.name.c_str(), 0) != 0) continue;
    freed += each.disk_bytes;
    totals.served_bytes += entry.served_bytes;
    totals.fetched_bytes += entry.fetched_bytes;
  }
  if (::unlinkat(root_->get(), set.name.c_str(), AT_REMOVEDIR) == 0) freed += set.disk_bytes;
  return freed;
}

std::uint64_t CacheFolder::clear() noexcept {
  Account account(*this);
  return account.is_open() ? remove_unused(account, UINT64_MAX) : 0;
}

std::vector<CacheEntry> CacheFolder::entries() const {
  std::vector<CacheEntry> found;
  const bool all_are_used = !Alone(open_set("."), 0).is_held();
  for (const Found& set : find_sets()) {
    const Alone folder(open_set(set.name), 0);
    for (const Found& each : set.files) {
      CacheEntry entry;
      if (!describe_cached(folder.descriptor(), each.name, entry)) continue;
      entry.kept_bytes = each.disk_bytes;
      entry.last_used_s = std::max(set.written_ns, each.written_ns) / 1'000'000'000;
      entry.is_in_use = all_are_used || !folder.is_held();
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
  auto made = std::make_shared<const FileDescriptor>(open_set("."));
  if (!lock_within(made->get(), OpenLock::with_others, kMaxWaitMs)) return nullptr;
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
  ++folder_->sets_held_;
}

CacheSet::~CacheSet() {
  --folder_->sets_held_;
}

bool CacheSet::lock() {
  const int root = folder_->descriptor();
  const bool has_own = folder_->sets_held_ <= kMaxLocks;
  if (!has_own && (lock_ = folder_->hold_everything()) == nullptr) return false;
  const std::int64_t until_ms = steady_ms() + kMaxWaitMs;
  while (steady_ms() <= until_ms) {
    if (folder_->may_write() && ::mkdirat(root, name_.c_str(), 0700) != 0 && errno != EEXIST) {
      folder_->tell_of_failure(errno);
    }
    const auto opened = std::make_shared<const FileDescriptor>(folder_->open_set(name_));
    if (opened->get() < 0) return false;
    if (folder_->may_write()) ::futimens(opened->get(), nullptr);  // the time of the last use
    if (!has_own) return true;
    if (!lock_within(opened->get(), OpenLock::with_others, kMaxWaitMs)) break;
    // Another process may have removed the set before the lock was taken.
    struct stat locked, named;
    if (::fstat(opened->get(), &locked) == 0 && ::fstatat(root, name_.c_str(), &named, 0) == 0 &&
        locked.st_dev == named.st_dev && locked.st_ino == named.st_ino) {
      lock_ = opened;
      return true;
    }
  }
  // Another process has been removing files of the set for a second. Perhaps the process was
  // stopped.
  folder_->locks_fail_until_ms_ = steady_ms() + kBrokenMs;
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
