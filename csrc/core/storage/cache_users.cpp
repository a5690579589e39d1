#include "core/storage/cache_users.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/storage/beyond_posix.h"
#include "core/storage/folders.h"

namespace tfrfast {
namespace {

constexpr std::uint64_t kNobodyElse = 0;  // the byte that everybody shares
constexpr int kMaxWaitMs = 30'000;
// With more than that, what a process uses is listed.
constexpr std::size_t kMaxLocks = 64;
// The bytes that say which lists belong to processes that live. They follow those of all keys.
constexpr std::uint64_t kFirstList = (std::uint64_t{1} << 62) + 1;
constexpr std::uint64_t kMaxLists = 1024;
constexpr char kListName[] = "users.";

// Guards all of them. Nobody waits for a disk while holding it: lists are never flushed.
constinit std::mutex users_mutex;

// Those that live. The pointer is good while the mutex is held: the last owner's end waits for it.
struct Known {
  CacheUsers* users = nullptr;
  std::weak_ptr<CacheUsers> shared;
};
using FileIdentity = std::pair<std::uint64_t, std::uint64_t>;  // device and inode
std::map<FileIdentity, Known>& known_users() {
  static auto* const known = new std::map<FileIdentity, Known>;
  return *known;
}

// The byte that is locked while the object is in use.
std::uint64_t byte_of(std::uint64_t key) noexcept {
  return (key >> 2) + 1;
}

bool is_taken(int error) noexcept {
  return error == EAGAIN || error == EACCES;
}

void sleep_without(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  lock.lock();
}

}  // namespace

std::shared_ptr<CacheUsers> CacheUsers::open(const std::string& file) {
  std::unique_lock lock(users_mutex);
  for (int waited_ms = 0;;) {
    struct stat status;
    if (::stat(file.c_str(), &status) == 0) {
      const auto known = known_users().find({status.st_dev, status.st_ino});
      if (known != known_users().end()) {
        if (std::shared_ptr<CacheUsers> found = known->second.shared.lock()) return found;
        // Its last user is just closing it, and another descriptor would lose its locks by that.
        // In a forked child nobody is.
        if (++waited_ms < 100) {
          sleep_without(lock);
          continue;
        }
      }
    }
    const int opened = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (opened < 0) throw_system_error(errno, "Opening the cache's file", file);
    if (::fstat(opened, &status) != 0) {
      const int failed = errno;
      ::close(opened);
      throw_system_error(failed, "Examining the cache's file", file);
    }
    Known& entry = known_users()[{status.st_dev, status.st_ino}];
    auto made = std::make_shared<CacheUsers>(file, opened);
    entry = {made.get(), made};
    return made;
  }
}

CacheUsers::CacheUsers(std::string file, int descriptor) noexcept
    : file_(std::move(file)), descriptor_(descriptor) {}

CacheUsers::~CacheUsers() {
  const std::lock_guard lock(users_mutex);
  std::erase_if(known_users(), [this](const auto& each) { return each.second.users == this; });
  if (list_ != nullptr) list_->end();
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool CacheUsers::begin_alone() {
  const std::lock_guard lock(users_mutex);
  if (is_shared_) return false;
  if (lock_byte(descriptor_, kNobodyElse, ByteLock::exclusive) == 0) return true;
  if (is_taken(errno)) return false;
  const std::string folder = folder_of(file_);
  throw Error(ErrorKind::io,
              "'" + folder + "' cannot be a cache: its filesystem has no locks (" +
                  std::strerror(errno) + "). Name a folder on a local disk.",
              {folder, {}, {}}, ENOLCK);
}

bool CacheUsers::share() {
  std::unique_lock lock(users_mutex);
  for (int waited_ms = 0; !is_shared_; ++waited_ms) {
    is_shared_ = lock_byte(descriptor_, kNobodyElse, ByteLock::shared) == 0;
    if (is_shared_) break;
    if (waited_ms > kMaxWaitMs) return false;
    sleep_without(lock);
  }
  return true;
}

void CacheUsers::take_room_from(std::shared_ptr<CacheLedger> ledger,
                                std::uint64_t limit_bytes) noexcept {
  const std::lock_guard lock(users_mutex);
  if (room_.ledger != nullptr) limit_bytes = std::min(limit_bytes, room_.limit_bytes);
  room_ = {std::move(ledger), limit_bytes};
}

bool CacheUsers::is_list(const std::string& name) noexcept {
  return name.starts_with(kListName);
}

void CacheUsers::begin_use(std::uint64_t key) noexcept {
  try {
    std::unique_lock lock(users_mutex);
    for (int waited_ms = 0; alone_.contains(key) && waited_ms < kMaxWaitMs; ++waited_ms) {
      sleep_without(lock);
    }
    if (++in_use_[key].times > 1) return;
    ++locks_;
    // Another process holds it alone only while it removes the object, or looks at who uses it.
    for (int waited_ms = 0; lock_byte(descriptor_, byte_of(key), ByteLock::shared) != 0;
         ++waited_ms) {
      if (!is_taken(errno) || waited_ms > kMaxWaitMs) return;
      sleep_without(lock);
      if (!in_use_.contains(key)) return;
    }
    list_if_many(key);
  } catch (const std::exception&) {
    // No memory: it may give way.
  }
}

void CacheUsers::end_use(std::uint64_t key) noexcept {
  const std::lock_guard lock(users_mutex);
  const auto found = in_use_.find(key);
  if (found == in_use_.end() || --found->second.times > 0) return;
  const bool is_listed = found->second.is_listed;
  in_use_.erase(found);
  if (is_listed) return list_->remove(key);
  --locks_;
  if (!alone_.contains(key)) lock_byte(descriptor_, byte_of(key), ByteLock::none);
}

// Call it while the key's byte is locked: whoever locks it next finds the key in the list.
void CacheUsers::list_if_many(std::uint64_t key) {
  const auto found = in_use_.find(key);
  if (found == in_use_.end()) return;
  if (!found->second.is_listed) {
    if (locks_ <= kMaxLocks) return;
    if (list_ == nullptr) {
      list_ = begin_list(descriptor_, {key});
      if (list_ == nullptr) return;
    } else if (!list_->add(key)) {
      return;
    }
    found->second.is_listed = true;
    --locks_;
  }
  if (!alone_.contains(key)) lock_byte(descriptor_, byte_of(key), ByteLock::none);
}

// Null if there is no room, and the like.
std::unique_ptr<CacheRoster> CacheUsers::begin_list(int descriptor,
                                                    const std::vector<std::uint64_t>& keys) const {
  // If somebody has removed the folder, the names there are others'.
  if (room_.ledger == nullptr || !is_named(descriptor, file_)) return nullptr;
  for (std::uint64_t list = 0; list < kMaxLists; ++list) {
    if (lock_byte(descriptor, kFirstList + list, ByteLock::exclusive) != 0) {
      if (is_taken(errno)) continue;
      return nullptr;
    }
    auto made = CacheRoster::make(name_of_list(list), room_, keys);
    if (made == nullptr) lock_byte(descriptor, kFirstList + list, ByteLock::none);
    return made;
  }
  return nullptr;
}

std::string CacheUsers::name_of_list(std::uint64_t list) const {
  return folder_of(file_) + "/" + kListName + std::to_string(list);
}

// True if that cannot be known.
bool CacheUsers::is_listed_by_others(std::uint64_t key) const noexcept {
  try {
    for (std::uint64_t list = 0; list < kMaxLists; ++list) {
      const std::uint64_t byte = kFirstList + list;
      if (!are_bytes_locked(descriptor_, byte, kMaxLists - list)) return false;  // the usual case
      if (!are_bytes_locked(descriptor_, byte, 1)) continue;
      if (CacheRoster::may_list(name_of_list(list), key)) return true;
    }
    return false;
  } catch (const std::exception&) {
    return true;
  }
}

void CacheUsers::lock_as_used(std::uint64_t key) noexcept {
  const auto found = in_use_.find(key);
  const bool is_locked = found != in_use_.end() && !found->second.is_listed;
  lock_byte(descriptor_, byte_of(key), is_locked ? ByteLock::shared : ByteLock::none);
}

bool CacheUsers::is_used_here(std::uint64_t key) const noexcept {
  const std::lock_guard lock(users_mutex);
  return in_use_.contains(key);
}

void CacheUsers::count_object(std::uint64_t object, std::uint64_t room_bytes) {
  const std::lock_guard lock(users_mutex);
  Counted& counted = objects_[object];
  if (++counted.times > 1) return;
  counted.room_bytes = room_bytes;
  room_of_objects_ += room_bytes;
}

void CacheUsers::discount_object(std::uint64_t object) noexcept {
  const std::lock_guard lock(users_mutex);
  const auto found = objects_.find(object);
  if (found == objects_.end() || --found->second.times > 0) return;
  room_of_objects_ -= found->second.room_bytes;
  objects_.erase(found);
}

CacheUsers::Alone::Alone(CacheUsers& users, std::uint64_t key, int own_uses) noexcept
    : users_(users), key_(key), own_uses_(own_uses) {
  try {
    const std::lock_guard lock(users_mutex);
    const auto found = users_.in_use_.find(key);
    const int uses = found == users_.in_use_.end() ? 0 : found->second.times;
    if (uses != own_uses || !users_.alone_.insert(key).second) return;
    if (lock_byte(users_.descriptor_, byte_of(key), ByteLock::exclusive) == 0) {
      is_held_ = !users_.is_listed_by_others(key);
      if (!is_held_) users_.lock_as_used(key);
    }
    if (!is_held_) users_.alone_.erase(key);
  } catch (const std::exception&) {
    // No memory: not held.
  }
}

CacheUsers::Alone::~Alone() {
  if (!is_held_) return;
  const std::lock_guard lock(users_mutex);
  users_.alone_.erase(key_);
  users_.lock_as_used(key_);
}

// The locks on all that is in use, with another file. Without one, nothing is locked, nor removed.
CacheUsers::Locks CacheUsers::take_all_locks() const noexcept {
  Locks taken;
  taken.descriptor = ::open(file_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (taken.descriptor < 0) return taken;
  if (is_shared_) lock_byte(taken.descriptor, kNobodyElse, ByteLock::shared);
  try {
    std::vector<std::uint64_t> keys;
    for (const auto& [key, use] : in_use_) keys.push_back(key);
    // All of them: another process may be looking at who uses one that has been listed so far, and
    // its byte cannot be locked at that moment.
    if (keys.size() > kMaxLocks) taken.list = begin_list(taken.descriptor, keys);
  } catch (const std::exception&) {
    // No memory: all are locked.
  }
  if (taken.list != nullptr) return taken;
  for (const auto& [key, use] : in_use_) {
    lock_byte(taken.descriptor, byte_of(key), ByteLock::shared);
  }
  return taken;
}

void CacheUsers::hold(Locks taken) noexcept {
  descriptor_ = taken.descriptor;
  list_ = std::move(taken.list);
  locks_ = list_ == nullptr ? in_use_.size() : 0;
  for (auto& [key, use] : in_use_) use.is_listed = list_ != nullptr;
}

// Locks belong to an open file. After a fork, parent and child would share it, and each could
// unlock what the other reads. So the child keeps that file, with all its locks, and the parent
// goes on with another one, and a list of its own, which it has taken before. Where locks belong to
// processes, a child has none, and takes its own. While anything is held alone, nobody forks: a
// child has no thread that would give it back.
void CacheUsers::before_fork() noexcept {
  for (int waited_ms = 0;; ++waited_ms) {
    users_mutex.lock();
    bool is_any_held = false;
    for (const auto& [identity, known] : known_users()) {
      is_any_held = is_any_held || (known.users != nullptr && !known.users->alone_.empty());
    }
    if (!is_any_held || waited_ms > kMaxWaitMs) break;
    users_mutex.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (!kByteLocksBelongToFiles) return;
  for (const auto& [identity, known] : known_users()) {
    if (known.users != nullptr) known.users->parents_ = known.users->take_all_locks();
  }
}

void CacheUsers::in_parent() noexcept {
  for (const auto& [identity, known] : known_users()) {
    if (kByteLocksBelongToFiles && known.users != nullptr) known.users->go_on_as_parent();
  }
  users_mutex.unlock();
}

void CacheUsers::in_child() noexcept {
  for (const auto& [identity, known] : known_users()) {
    if (known.users != nullptr) known.users->go_on_as_child();
  }
  users_mutex.unlock();
}

void CacheUsers::go_on_as_parent() noexcept {
  if (descriptor_ >= 0) ::close(descriptor_);
  // By now there is a descriptor that is free, if there was none before.
  if (parents_.descriptor < 0) parents_ = take_all_locks();
  hold(std::exchange(parents_, {}));
}

void CacheUsers::go_on_as_child() noexcept {
  if (kByteLocksBelongToFiles) {
    if (parents_.descriptor >= 0) ::close(parents_.descriptor);
    parents_ = {};
  } else {
    if (descriptor_ >= 0) ::close(descriptor_);
    hold(take_all_locks());
  }
}

}  // namespace tfrfast
