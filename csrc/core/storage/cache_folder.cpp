#include "core/storage/cache_folder.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <utility>

#include "core/base/error.h"
#include "core/base/hashing.h"
#include "core/base/warnings.h"
#include "core/storage/cache_table.h"
#include "core/storage/disk_space.h"
#include "core/storage/folders.h"
#include "core/storage/users.h"

namespace tfrfast {
namespace {

constexpr std::int64_t kBetweenSearchesMs = 5'000;
constexpr std::int64_t kBrokenMs = 60'000;
// What is left free for what is charged afterwards, and for lists of what is in use.
constexpr std::uint64_t kMaxSpareBytes = 64 << 20;
constexpr std::uint64_t kSpareParts = 256;

// Guards those that are known, and is held while one is opened.
constinit std::mutex folders_mutex;

using FolderKey = std::pair<std::string, std::uint64_t>;
std::map<FolderKey, std::weak_ptr<CacheFolder>>& known_folders() {
  static auto* const known = new std::map<FolderKey, std::weak_ptr<CacheFolder>>;
  return *known;
}

// When a folder that does not work may be tried again.
std::map<std::string, std::int64_t>& broken_until_ms() {
  static auto* const known = new std::map<std::string, std::int64_t>;
  return *known;
}

[[maybe_unused]] const int kFoldersAreGuarded = ::pthread_atfork(
    [] {
      folders_mutex.lock();
      CacheUsers::before_fork();
    },
    [] {
      CacheUsers::in_parent();
      folders_mutex.unlock();
    },
    [] {
      CacheUsers::in_child();
      folders_mutex.unlock();
    });

std::int64_t steady_ms() noexcept {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Others, such as ".", are not ours to look into.
bool is_folder_of_object(const std::string& name) {
  return name.size() == 32 && name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// A path without this ending; empty if it has another one.
std::string without(const std::string& path, const char* ending) {
  const std::size_t length = std::strlen(ending);
  const bool has_it =
      path.size() > length && path.compare(path.size() - length, length, ending) == 0;
  return has_it ? path.substr(0, path.size() - length) : std::string();
}

// What its name says: the key of a version. False if it is not a table.
bool is_table(const std::string& name, std::uint64_t* key) {
  const std::string text = without(name, kCacheTableEnding);
  const char* const end = text.data() + text.size();
  return !text.empty() && std::from_chars(text.data(), end, *key, 16).ptr == end;
}

// Removes what is no object's in a folder. Returns what the others take of the disk, and tells
// their tables.
std::uint64_t put_in_order(const std::string& folder, std::uint64_t block_bytes) {
  std::uint64_t used = 0;
  for (const std::string& name : list_folder(folder)) {
    if (name == "." || name == "..") continue;
    const std::string path = folder + "/" + name;
    if (const std::string object = without(path, kCacheTableEnding); !object.empty()) {
      const std::string bytes = object + kCacheBytesEnding;
      const FoundTable table = find_cache_table(object, block_bytes);
      if (table.makes_sense() && look_at_name(bytes).kind == NameKind::file) {
        const std::uint64_t paid = table.pages * kCachePageBytes + block_bytes - kCachePageBytes;
        const std::uint64_t taken = bytes_on_disk(bytes);
        const std::uint64_t excess = taken > paid ? taken - paid : 0;
        table.words->store(CacheTable::room_pages, table.pages);
        table.words->store(CacheTable::excess_bytes, excess);
        used += table.room - table.excess + excess;
        continue;
      }
      remove_file(bytes);
    } else if (const std::string other = without(path, kCacheBytesEnding); !other.empty()) {
      if (look_at(other + kCacheTableEnding).kind == NameKind::file) continue;
    }
    remove_file(path);
  }
  return used;
}

// Whether a cache may work there at another time.
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

std::shared_ptr<CacheFolder> CacheFolder::open(const std::string& folder,
                                               std::uint64_t limit_bytes) {
  const std::lock_guard lock(folders_mutex);
  std::weak_ptr<CacheFolder>& known = known_folders()[{folder, limit_bytes}];
  if (std::shared_ptr<CacheFolder> found = known.lock()) return found;
  std::shared_ptr<CacheFolder> made(new CacheFolder(folder + "/v1", limit_bytes));
  made->begin();
  known = made;
  return made;
}

std::shared_ptr<CacheFolder> CacheFolder::open_if_it_works(const std::string& folder,
                                                           std::uint64_t limit_bytes) {
  {
    const std::lock_guard lock(folders_mutex);
    const auto broken = broken_until_ms().find(folder);
    if (broken != broken_until_ms().end() && steady_ms() < broken->second) return nullptr;
  }
  try {
    return open(folder, limit_bytes);
  } catch (const Error& error) {
    if (!may_pass(error)) throw;
    {
      const std::lock_guard lock(folders_mutex);
      broken_until_ms()[folder] = steady_ms() + kBrokenMs;
    }
    warn_once("cache " + folder + " " + std::to_string(error.system_error()),
              error.message() + " Everything comes from the network meanwhile.");
    return nullptr;
  }
}

CacheFolder::CacheFolder(std::string path, std::uint64_t limit_bytes)
    : path_(std::move(path)), limit_bytes_(limit_bytes) {}

// Whoever can write there chooses what is read. Checksums are no protection against that.
void CacheFolder::refuse_unless_private() const {
  const NameStatus status = look_at_name(path_);
  const bool is_ours = status.kind == NameKind::folder && status.owner == this_user();
  if (is_ours && !status.others_may_write) return;
  throw Error(ErrorKind::io,
              "'" + path_ + "' cannot be a cache: " +
                  (is_ours ? std::string("others may write to it. Take that away (`chmod go-w`)")
                           : "it is not a folder of yours, but belongs to " +
                                 name_of_user(status.owner) + ". Remove it") +
                  ", or name another folder.",
              {path_, {}, {}}, EACCES);
}

void CacheFolder::begin() {
  make_folders(path_, 0700);
  refuse_unless_private();
  make_folders(path_ + "/objects", 0700);
  users_ = CacheUsers::open(path_ + "/users");
  // Then what dead processes have left is put in order.
  if (users_->begin_alone()) put_in_order();
  if (!users_->share()) {
    throw Error(ErrorKind::io,
                "The cache in '" + path_ +
                    "' is not used: for half a minute another process has been putting it in "
                    "order.",
                {path_, {}, {}}, EAGAIN);
  }
  ledger_ = CacheLedger::open(path_ + "/ledger");
  if (ledger_ == nullptr) {
    throw Error(ErrorKind::io,
                "'" + path_ +
                    "' is no cache that this version of tfrfast can use. Name another folder, or "
                    "remove that one.",
                {path_, {}, {}}, EIO);
  }
  block_bytes_ = ledger_->block_bytes();
  if (limit_bytes_ == 0) return;
  ledger_->set_last_limit(limit_bytes_);
  users_->take_room_from(ledger_, limit_bytes_);
}

void CacheFolder::put_in_order() {
  const std::string name = path_ + "/ledger";
  std::unique_ptr<CacheLedger> ledger = CacheLedger::open(name);
  if (ledger == nullptr) {
    if (const int failed = CacheLedger::make(name); failed != 0) {
      throw_system_error(failed, "Making the cache's file", name);
    }
    ledger = CacheLedger::open_any(name);
  }
  if (ledger == nullptr) return;
  for (const std::string& each : list_folder(path_)) {
    if (CacheUsers::is_list(each)) remove_file(path_ + "/" + each);
  }
  const std::string objects = path_ + "/objects";
  const std::uint64_t pages = smallest_piece_on_disk(path_) / kCachePageBytes;
  const std::uint64_t block_bytes = std::max<std::uint64_t>(pages, 1) * kCachePageBytes;
  std::uint64_t used = CacheLedger::empty_bytes(block_bytes);
  for (const std::string& each : list_folder(objects)) {
    if (!is_folder_of_object(each)) continue;
    try {
      used += tfrfast::put_in_order(objects + "/" + each, block_bytes);
    } catch (const Error&) {
      // It is not a folder.
    }
  }
  ledger->set(used, block_bytes);
}

std::uint64_t CacheFolder::reserve(std::uint64_t bytes, std::uint64_t unit) noexcept {
  if (is_broken()) return 0;
  const std::uint64_t wanted = bytes / unit * unit;
  const std::uint64_t limit = limit_bytes_ - std::min(limit_bytes_ / kSpareParts, kMaxSpareBytes);
  const std::uint64_t taken = ledger_->take(wanted, unit, limit, false);
  if (taken > 0 || wanted == 0) return taken;
  // One thread looks for more. Nobody waits for it.
  const std::int64_t now_ms = steady_ms();
  std::int64_t until_ms = no_room_until_ms_;
  if (now_ms >= until_ms &&
      no_room_until_ms_.compare_exchange_strong(until_ms, now_ms + kBetweenSearchesMs) &&
      ledger_->is_readable() && make_room(wanted)) {
    no_room_until_ms_ = 0;
  }
  return ledger_->take(wanted, unit, limit, true);
}

bool CacheFolder::fits() const noexcept {
  return users_->room_of_objects() + CacheLedger::empty_bytes(block_bytes_) <= limit_bytes_;
}

void CacheFolder::tell_of_failure(int system_error) noexcept {
  broken_until_ms_ = steady_ms() + kBrokenMs;
  try {
    const bool is_full = system_error == ENOSPC || system_error == EDQUOT;
    warn_once("cache " + path_,
              "The cache in '" + path_ + "' cannot be written: " + std::strerror(system_error) +
                  ". What it holds is used, and everything else comes from the network. " +
                  (is_full ? "Free space on that disk, or give the cache a lower limit."
                           : "Name a folder that this user may write to."));
  } catch (const std::exception&) {
    // No memory for a warning.
  }
}

bool CacheFolder::is_broken() const noexcept {
  return steady_ms() < broken_until_ms_.load(std::memory_order_relaxed);
}

std::string CacheFolder::name_of(std::uint64_t key) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(key));
  return text;
}

std::string CacheFolder::folder_of(const std::string& url) const {
  return path_ + "/objects/" + name_of(set_of(url)) + name_of(fnv1a(url));
}

std::uint64_t CacheFolder::set_of(const std::string& url) noexcept {
  return fnv1a(std::string_view(url).substr(0, url.rfind('/') + 1));
}

std::vector<CacheFolder::Candidate> CacheFolder::candidates(bool with_used) const {
  std::vector<Candidate> found;
  for (const std::string& each : list_folder(path_ + "/objects")) {
    if (!is_folder_of_object(each)) continue;
    Candidate one{path_ + "/objects/" + each, 0, 0, 0};
    std::from_chars(each.data(), each.data() + 16, one.set, 16);
    if (!with_used && users_->is_used_here(one.set)) continue;
    try {
      for (const std::string& name : list_folder(one.folder)) {
        struct stat status;
        if (!is_table(name, &one.key)) continue;
        if (::stat((one.folder + "/" + name).c_str(), &status) != 0) continue;
        one.last_used_ns = static_cast<std::int64_t>(status.st_mtime) * 1'000'000'000;
#if defined(__linux__)
        one.last_used_ns += status.st_mtim.tv_nsec;
#endif
        found.push_back(one);
      }
    } catch (const Error&) {
      // Somebody has removed it.
    }
  }
  std::sort(found.begin(), found.end(),
            [](const Candidate& a, const Candidate& b) { return a.last_used_ns < b.last_used_ns; });
  return found;
}

std::uint64_t CacheFolder::remove(const Candidate& which) noexcept {
  const CacheUsers::Alone alone(*users_, which.key);
  return alone.is_held() ? remove_files(which) : 0;
}

// Call it while the version is held alone.
std::uint64_t CacheFolder::remove_files(const Candidate& which) noexcept {
  try {
    const std::string path = which.folder + "/" + name_of(which.key);
    const FoundTable table = find_cache_table(path, block_bytes_);
    std::uint64_t freed = table.room;
    remove_file(path + kCacheBytesEnding);
    if (!remove_file(path + kCacheTableEnding)) freed = 0;
    ::rmdir(which.folder.c_str());  // if that was the last one
    give_back(freed);
    if (freed > 0 && table.makes_sense()) {
      ledger_->add_past_traffic({table.words->load(CacheTable::served_bytes),
                                 table.words->load(CacheTable::fetched_bytes)});
    }
    return freed;
  } catch (const std::exception&) {
    return 0;
  }
}

bool CacheFolder::remove_damaged(const std::string& url, std::uint64_t key) noexcept {
  try {
    const Candidate one{folder_of(url), 0, key, 0};
    const CacheUsers::Alone alone(*users_, key, 1);
    if (alone.is_held()) remove_files(one);
    return alone.is_held();
  } catch (const std::exception&) {
    return false;
  }
}

std::uint64_t CacheFolder::remove_unless_set_is_used(const Candidate& which) noexcept {
  const CacheUsers::Alone alone(*users_, which.set);
  return alone.is_held() ? remove(which) : 0;
}

// Whether there is enough now.
bool CacheFolder::make_room(std::uint64_t bytes) noexcept {
  // Somewhat more, so that not every request has to look.
  const std::uint64_t wanted = std::max(bytes, std::min(limit_bytes_ / 64, std::uint64_t{1} << 30));
  std::uint64_t freed = 0;
  try {
    for (const Candidate& each : candidates(false)) {
      if (freed >= wanted) break;
      freed += remove_unless_set_is_used(each);
    }
  } catch (const std::exception&) {
    // Then there is no room.
  }
  return freed >= bytes;
}

std::uint64_t CacheFolder::clear() noexcept {
  std::uint64_t freed = 0;
  try {
    for (const Candidate& each : candidates(false)) freed += remove_unless_set_is_used(each);
  } catch (const std::exception&) {
    // What is left stays.
  }
  return freed;
}

void CacheFolder::remove_versions(const std::string& url, std::uint64_t but) noexcept {
  try {
    Candidate one{folder_of(url), 0, 0, 0};
    for (const std::string& name : list_folder(one.folder)) {
      if (is_table(name, &one.key) && one.key != but) remove(one);
    }
  } catch (const std::exception&) {
    // There is none.
  }
}

std::vector<CacheEntry> CacheFolder::entries() const {
  std::vector<CacheEntry> found;
  for (const Candidate& each : candidates(true)) {
    const FoundTable table = find_cache_table(each.folder + "/" + name_of(each.key), block_bytes_);
    if (!table.makes_sense()) continue;
    CacheEntry one;
    one.url = url_in_cache_table(*table.words);
    one.object_bytes = table.words->load(CacheTable::object_bytes);
    one.kept_bytes = table.room;
    one.last_used_s = each.last_used_ns / 1'000'000'000;
    one.is_in_use = !CacheUsers::Alone(*users_, each.set).is_held();
    one.served_bytes = table.words->load(CacheTable::served_bytes);
    one.fetched_bytes = table.words->load(CacheTable::fetched_bytes);
    found.push_back(std::move(one));
  }
  return found;
}

}  // namespace tfrfast
