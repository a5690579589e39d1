#include "core/storage/cache_folder.h"

#include <fcntl.h>
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
#include <mutex>
#include <thread>
#include <tuple>
#include <utility>

#include "core/base/error.h"
#include "core/base/hashing.h"
#include "core/base/warnings.h"
#include "core/storage/beyond_posix.h"
#include "core/storage/folders.h"
#include "core/storage/users.h"

namespace tfrfast {
namespace {

constexpr std::string_view kAccessBegins = "cache:";
constexpr std::string_view kPlaceBegins = "at:";
constexpr std::uint64_t kLedgerMagic = 0x3152'4744'4c52'4654;  // "TFRLDGR1"
enum LedgerWord : std::size_t { kMagicWord, kUsedWord, kLimitWord, kLedgerWords = 512 };
// What the folder takes without any object: this file and four folders.
constexpr std::uint64_t kLedgerBytes = kLedgerWords * sizeof(std::uint64_t) + 4 * kCachePageBytes;
constexpr std::uint64_t kNobodyElse = 0;  // the byte of `users` that everybody shares
constexpr std::int64_t kBetweenSearchesMs = 5'000;
constexpr std::int64_t kBrokenMs = 60'000;
constexpr int kMaxWaitMs = 30'000;
constexpr const char* kTableEnding = ".pages";
constexpr const char* kBytesEnding = ".bytes";

constinit std::mutex folders_mutex;

using FolderKey = std::pair<std::string, std::uint64_t>;
std::map<FolderKey, std::weak_ptr<CacheFolder>>& known_folders() {
  static auto* const known = new std::map<FolderKey, std::weak_ptr<CacheFolder>>;
  return *known;
}

}  // namespace

// Locks belong to an open file. After a fork, parent and child would share it, and each could
// unlock what the other reads. So the child keeps that file, with all its locks, and the parent,
// which fork() does not leave before that, takes another one. Where locks belong to processes, a
// child has none, and takes its own.
void part_cache_folders() noexcept {
  for (auto& [name, folder] : known_folders()) {
    if (const std::shared_ptr<CacheFolder> found = folder.lock()) found->take_other_locks();
  }
}

namespace {

[[maybe_unused]] const int kFoldersAreGuarded = ::pthread_atfork([] { folders_mutex.lock(); },
                                                                 [] {
                                                                   if (kLocksKeepThreadsOut)
                                                                     part_cache_folders();
                                                                   folders_mutex.unlock();
                                                                 },
                                                                 [] {
                                                                   if (!kLocksKeepThreadsOut)
                                                                     part_cache_folders();
                                                                   folders_mutex.unlock();
                                                                 });

std::int64_t steady_ms() noexcept {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// The byte of `users` that is locked while the object is in use.
std::uint64_t byte_of(std::uint64_t key) noexcept {
  return (key >> 2) + 1;
}

[[noreturn]] void refuse_access() {
  throw Error(ErrorKind::invalid, "The description of a cache is damaged.");
}

std::uint64_t number_before_colon(std::string_view& text) {
  std::uint64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || end == text.data() + text.size() || *end != ':') refuse_access();
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return number;
}

// Others, such as ".", are not ours to look into.
bool is_folder_of_object(const std::string& name) {
  return name.size() == 32 && name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// A table, and what it and its pages take of the disk. Its size alone tells that, whatever is in
// it.
struct FoundTable {
  std::unique_ptr<SharedWords> words;  // null if there is none
  std::uint64_t room = 0;

  // Whether it is one, and is complete.
  bool makes_sense() const noexcept {
    return words != nullptr && words->load(CacheTable::magic) == CacheTable::kMagic &&
           CacheTable::words_of(words->load(CacheTable::object_bytes)) == words->count();
  }
};

FoundTable find_table(const std::string& path) {
  const auto words = static_cast<std::size_t>(look_at(path).bytes / sizeof(std::uint64_t));
  FoundTable found;
  if (words > CacheTable::kHeaderWords) found.words = SharedWords::open(path, words);
  if (found.words == nullptr) return found;
  found.room = CacheTable::room_of_words(words) +
               found.words->count_set(CacheTable::kHeaderWords) * kCachePageBytes;
  return found;
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

bool ends_with(const std::string& name, const char* ending) {
  const std::size_t length = std::strlen(ending);
  return name.size() > length && name.compare(name.size() - length, length, ending) == 0;
}

}  // namespace

CacheAccess split_access(const std::string& access) {
  CacheAccess result;
  if (!access.starts_with(kAccessBegins)) {
    result.client = access;
    return result;
  }
  std::string_view rest = std::string_view(access).substr(kAccessBegins.size());
  result.limit_bytes = number_before_colon(rest);
  const std::uint64_t length = number_before_colon(rest);
  if (length == 0 || length > rest.size()) refuse_access();
  result.folder = rest.substr(0, static_cast<std::size_t>(length));
  rest.remove_prefix(static_cast<std::size_t>(length));
  if (rest.starts_with(kPlaceBegins)) {
    rest.remove_prefix(kPlaceBegins.size());
    const std::uint64_t bytes = number_before_colon(rest);
    if (bytes > rest.size()) refuse_access();
    result.place = rest.substr(0, static_cast<std::size_t>(bytes));
    rest.remove_prefix(static_cast<std::size_t>(bytes));
  }
  result.client = rest;
  return result;
}

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
  static std::atomic<std::int64_t> not_before_ms{0};
  if (steady_ms() < not_before_ms.load()) return nullptr;
  try {
    return open(folder, limit_bytes);
  } catch (const Error& error) {
    if (!may_pass(error)) throw;
    not_before_ms = steady_ms() + kBrokenMs;
    warn_once("cache " + folder + " " + std::to_string(error.system_error()),
              error.message() + " Everything comes from the network meanwhile.");
    return nullptr;
  }
}

CacheFolder::CacheFolder(std::string path, std::uint64_t limit_bytes)
    : path_(std::move(path)), limit_bytes_(limit_bytes) {}

CacheFolder::~CacheFolder() {
  if (users_ >= 0) ::close(users_);
}

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
  const std::string users = path_ + "/users";
  users_ = ::open(users.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (users_ < 0) throw_system_error(errno, "Opening the cache's file", users);
  const std::string ledger = path_ + "/ledger";
  // Nobody else has the folder open: then what dead processes have left is put in order.
  const bool is_alone = lock_byte(users_, kNobodyElse, ByteLock::exclusive) == 0;
  if (!is_alone && errno != EAGAIN && errno != EACCES) {
    throw Error(ErrorKind::io,
                "'" + path_ + "' cannot be a cache: its filesystem has no locks (" +
                    std::strerror(errno) + "). Name a folder on a local disk.",
                {path_, {}, {}}, ENOLCK);
  }
  if (is_alone) {
    ledger_ = SharedWords::open(ledger, kLedgerWords);
    if (ledger_ == nullptr || ledger_->load(kMagicWord) != kLedgerMagic) {
      ledger_ = nullptr;
      remove_file(ledger);
      if (const int failed = SharedWords::make(ledger, kLedgerWords); failed != 0) {
        throw_system_error(failed, "Making the cache's file", ledger);
      }
      ledger_ = SharedWords::open(ledger, kLedgerWords);
    }
    if (ledger_ != nullptr) recount();
  }
  for (int waited = 0; lock_byte(users_, kNobodyElse, ByteLock::shared) != 0; waited += 5) {
    if (waited > kMaxWaitMs) {
      throw Error(ErrorKind::io,
                  "The cache in '" + path_ +
                      "' is not used: for half a minute another process has been putting it in "
                      "order.",
                  {path_, {}, {}}, EAGAIN);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  if (ledger_ == nullptr) ledger_ = SharedWords::open(ledger, kLedgerWords);
  if (ledger_ == nullptr || ledger_->load(kMagicWord) != kLedgerMagic) {
    throw Error(ErrorKind::io,
                "'" + path_ +
                    "' is no cache that this version of tfrfast can use. Name another folder, or "
                    "remove that one.",
                {path_, {}, {}}, EIO);
  }
  if (limit_bytes_ > 0) ledger_->store(kLimitWord, limit_bytes_);
}

// Without a file of its own, this process locks nothing, and removes nothing.
void CacheFolder::take_other_locks() noexcept {
  if (users_ < 0) return;
  ::close(users_);
  users_ = ::open((path_ + "/users").c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (users_ < 0) return;
  lock_byte(users_, kNobodyElse, ByteLock::shared);
  for (const auto& [key, count] : in_use_) lock_byte(users_, byte_of(key), ByteLock::shared);
}

void CacheFolder::recount() {
  std::uint64_t used = kLedgerBytes;
  const std::string objects = path_ + "/objects";
  for (const std::string& each : list_folder(objects)) {
    if (!is_folder_of_object(each)) continue;
    const std::string folder = objects + "/" + each;
    std::vector<std::string> names;
    try {
      names = list_folder(folder);
    } catch (const Error&) {
      continue;
    }
    for (const std::string& name : names) {
      const std::string path = folder + "/" + name;
      if (ends_with(name, kTableEnding)) {
        const std::string bytes =
            path.substr(0, path.size() - std::strlen(kTableEnding)) + kBytesEnding;
        const FoundTable table = find_table(path);
        if (table.makes_sense() && look_at_name(bytes).kind == NameKind::file) {
          used += table.room;
          continue;
        }
        remove_file(bytes);
      } else if (ends_with(name, kBytesEnding)) {
        std::string table = path.substr(0, path.size() - std::strlen(kBytesEnding));
        if (look_at(table + kTableEnding).kind == NameKind::file) continue;
      }
      if (name != "." && name != "..") remove_file(path);
    }
  }
  ledger_->store(kUsedWord, used);
  ledger_->store(kMagicWord, kLedgerMagic);
}

std::uint64_t CacheFolder::used_bytes() const noexcept {
  return ledger_->load(kUsedWord);
}

std::uint64_t CacheFolder::last_limit_bytes() const noexcept {
  return ledger_->load(kLimitWord);
}

std::uint64_t CacheFolder::reserve(std::uint64_t bytes, std::uint64_t unit) noexcept {
  if (is_broken()) return 0;
  const std::uint64_t wanted = bytes / unit * unit;
  for (bool looked = false;; looked = true) {
    std::uint64_t used = ledger_->load(kUsedWord);
    while (used != 0) {  // unless the ledger is unreadable
      const std::uint64_t left = limit_bytes_ > used ? limit_bytes_ - used : 0;
      const std::uint64_t granted = std::min(left / unit * unit, wanted);
      if (granted < wanted && !looked && steady_ms() >= no_room_until_ms_) break;
      if (granted == 0) return 0;
      if (ledger_->exchange(kUsedWord, used, used + granted)) return granted;
    }
    if (looked || used == 0) return 0;
    make_room(wanted);
  }
}

void CacheFolder::give_back(std::uint64_t bytes) noexcept {
  std::uint64_t used = ledger_->load(kUsedWord);
  while (used != 0) {  // unless the ledger is unreadable
    const std::uint64_t left = used - std::min(bytes, used);
    if (ledger_->exchange(kUsedWord, used, std::max(left, kLedgerBytes))) return;
  }
}

void CacheFolder::begin_use(std::uint64_t key) noexcept {
  try {
    std::unique_lock lock(folders_mutex);
    if (++in_use_[key] > 1) return;
    // Another process holds it alone only while it removes the object, or looks at who uses it.
    for (int waited = 0; lock_byte(users_, byte_of(key), ByteLock::shared) != 0; ++waited) {
      if ((errno != EAGAIN && errno != EACCES) || waited > kMaxWaitMs) return;
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      lock.lock();
      if (!in_use_.contains(key)) return;
    }
  } catch (const std::exception&) {
    // No memory: it may give way.
  }
}

void CacheFolder::end_use(std::uint64_t key) noexcept {
  const std::lock_guard lock(folders_mutex);
  const auto found = in_use_.find(key);
  if (found == in_use_.end() || --found->second > 0) return;
  in_use_.erase(found);
  lock_byte(users_, byte_of(key), ByteLock::none);
}

void CacheFolder::count_object(std::uint64_t bytes) noexcept {
  open_bytes_ += bytes + CacheTable::room_of(bytes) + kCachePageBytes;
}

void CacheFolder::discount_object(std::uint64_t bytes) noexcept {
  open_bytes_ -= bytes + CacheTable::room_of(bytes) + kCachePageBytes;
}

bool CacheFolder::fits() const noexcept {
  return open_bytes_.load(std::memory_order_relaxed) + kLedgerBytes <= limit_bytes_;
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
    std::uint64_t set = 0;
    std::from_chars(each.data(), each.data() + 16, set, 16);
    if (!with_used && in_use_.contains(set)) continue;
    const std::string folder = path_ + "/objects/" + each;
    try {
      for (const std::string& name : list_folder(folder)) {
        if (!ends_with(name, kTableEnding)) continue;
        Candidate one{folder, set, 0, 0};
        const char* const end = name.data() + name.size() - std::strlen(kTableEnding);
        if (std::from_chars(name.data(), end, one.key, 16).ptr != end) continue;
        struct stat status;
        if (::stat((folder + "/" + name).c_str(), &status) != 0) continue;
        one.last_used_ns = static_cast<std::int64_t>(status.st_mtime) * 1'000'000'000;
#if defined(__linux__)
        one.last_used_ns += status.st_mtim.tv_nsec;
#endif
        found.push_back(std::move(one));
      }
    } catch (const Error&) {
      // Somebody has removed it.
    }
  }
  return found;
}

// Call it with the lock held.
std::uint64_t CacheFolder::remove(const Candidate& which) noexcept {
  if (in_use_.contains(which.key)) return 0;
  if (lock_byte(users_, byte_of(which.key), ByteLock::exclusive) != 0) return 0;
  const std::uint64_t freed = remove_files(which);
  lock_byte(users_, byte_of(which.key), ByteLock::none);
  return freed;
}

// Call it with both locks held.
std::uint64_t CacheFolder::remove_files(const Candidate& which) noexcept {
  try {
    const std::string path = which.folder + "/" + name_of(which.key);
    std::uint64_t freed = find_table(path + kTableEnding).room;
    remove_file(path + kBytesEnding);
    if (!remove_file(path + kTableEnding)) freed = 0;
    ::rmdir(which.folder.c_str());  // if that was the last one
    give_back(freed);
    return freed;
  } catch (const std::exception&) {
    return 0;
  }
}

bool CacheFolder::remove_damaged(const std::string& url, std::uint64_t key) noexcept {
  try {
    const Candidate one{folder_of(url), 0, key, 0};
    const std::lock_guard lock(folders_mutex);
    const auto users = in_use_.find(key);
    if (users == in_use_.end() || users->second > 1) return false;
    if (lock_byte(users_, byte_of(key), ByteLock::exclusive) != 0) return false;
    remove_files(one);
    lock_byte(users_, byte_of(key), ByteLock::shared);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

// Call it with the lock held.
std::uint64_t CacheFolder::remove_unless_set_is_used(const Candidate& which) noexcept {
  if (in_use_.contains(which.set)) return 0;
  if (lock_byte(users_, byte_of(which.set), ByteLock::exclusive) != 0) return 0;
  const std::uint64_t freed = remove(which);
  lock_byte(users_, byte_of(which.set), ByteLock::none);
  return freed;
}

void CacheFolder::make_room(std::uint64_t bytes) noexcept {
  // Somewhat more, so that not every request has to look.
  const std::uint64_t wanted = std::max(bytes, std::min(limit_bytes_ / 64, std::uint64_t{1} << 30));
  std::uint64_t freed = 0;
  try {
    const std::lock_guard lock(folders_mutex);
    std::vector<Candidate> all = candidates(false);
    std::sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
      return a.last_used_ns < b.last_used_ns;
    });
    for (const Candidate& each : all) {
      if (freed >= wanted) break;
      freed += remove_unless_set_is_used(each);
    }
  } catch (const std::exception&) {
    // Then there is no room.
  }
  if (freed < bytes) no_room_until_ms_ = steady_ms() + kBetweenSearchesMs;
}

std::uint64_t CacheFolder::clear() noexcept {
  std::uint64_t freed = 0;
  try {
    const std::lock_guard lock(folders_mutex);
    for (const Candidate& each : candidates(false)) freed += remove_unless_set_is_used(each);
  } catch (const std::exception&) {
    // What is left stays.
  }
  return freed;
}

void CacheFolder::remove_versions(const std::string& url, std::uint64_t but) noexcept {
  try {
    const std::string folder = folder_of(url);
    const std::lock_guard lock(folders_mutex);
    for (const std::string& name : list_folder(folder)) {
      if (!ends_with(name, kTableEnding)) continue;
      Candidate one{folder, 0, 0, 0};
      const char* const end = name.data() + name.size() - std::strlen(kTableEnding);
      if (std::from_chars(name.data(), end, one.key, 16).ptr == end && one.key != but) remove(one);
    }
  } catch (const std::exception&) {
    // There is none.
  }
}

std::vector<CacheEntry> CacheFolder::entries() const {
  const std::lock_guard lock(folders_mutex);
  std::vector<Candidate> all = candidates(true);
  std::sort(all.begin(), all.end(),
            [](const Candidate& a, const Candidate& b) { return a.last_used_ns < b.last_used_ns; });
  std::vector<CacheEntry> found;
  for (const Candidate& each : all) {
    const std::string path = each.folder + "/" + name_of(each.key) + kTableEnding;
    const FoundTable found_table = find_table(path);
    if (!found_table.makes_sense()) continue;
    const SharedWords* const table = found_table.words.get();
    CacheEntry one;
    one.object_bytes = table->load(CacheTable::object_bytes);
    const std::uint64_t length =
        std::min<std::uint64_t>(table->load(CacheTable::url_bytes), CacheTable::kMaxIdentityBytes);
    for (std::uint64_t i = 0; i < length; ++i) {
      const std::uint64_t word = table->load(CacheTable::text + static_cast<std::size_t>(i / 8));
      one.url.push_back(static_cast<char>(word >> (8 * (i % 8))));
    }
    one.kept_bytes = found_table.room;
    one.last_used_s = each.last_used_ns / 1'000'000'000;
    one.is_in_use = in_use_.contains(each.set);
    if (!one.is_in_use) {
      one.is_in_use = lock_byte(users_, byte_of(each.set), ByteLock::exclusive) != 0;
      if (!one.is_in_use) lock_byte(users_, byte_of(each.set), ByteLock::none);
    }
    found.push_back(std::move(one));
  }
  return found;
}

}  // namespace tfrfast
