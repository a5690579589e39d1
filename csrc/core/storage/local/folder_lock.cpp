#include "core/storage/local/folder_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "core/base/fork.h"
#include "core/storage/local/beyond_posix.h"
#include "core/storage/storage.h"

namespace tfrfast {
namespace {

enum class Attempt { locked, taken, impossible };

// Tries until `attempt` returns anything but `taken`, for at most `max_wait_ms`.
template <class Try>
Attempt within(int max_wait_ms, const Try& attempt) {
  for (int waited_ms = 0, pause_ms = 1;; pause_ms = std::min(2 * pause_ms, 50)) {
    const Attempt result = attempt();
    if (result != Attempt::taken || waited_ms >= max_wait_ms) return result;
    std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
    waited_ms += pause_ms;
  }
}

Attempt lock_within(const FileDescriptor& file, int max_wait_ms) noexcept {
  return within(max_wait_ms, [&] {
    if (try_lock(file.get()) == 0) return Attempt::locked;
    return errno == EWOULDBLOCK || errno == EAGAIN ? Attempt::taken : Attempt::impossible;
  });
}

constinit std::mutex held_mutex;

// The folders that threads of this process hold, if the system's locks do not keep out threads.
// Never destroyed: threads may run until the very end.
std::set<FolderIdentity>& held() {
  static auto* const held = new std::set<FolderIdentity>;
  return *held;
}

}  // namespace

// A forked child has none of the threads that hold folders, and inherits no POSIX locks.
void hold_none_in_child() noexcept {
  if (!kLocksKeepThreadsOut) held().clear();
}

namespace {

std::mutex& mutex_of_held() noexcept {
  return held_mutex;
}

[[maybe_unused]] const int kHeldIsGuarded = make_fork_wait_for<mutex_of_held, hold_none_in_child>();

Attempt hold(const FolderIdentity& folder) {
  const std::scoped_lock lock(held_mutex);
  return held().insert(folder).second ? Attempt::locked : Attempt::taken;
}

void let_go(const FolderIdentity& folder) noexcept {
  const std::scoped_lock lock(held_mutex);
  held().erase(folder);
}

// Empty if nothing has the name.
std::optional<FolderIdentity> identity_of(const std::string& folder) noexcept {
  struct stat status;
  if (::stat(folder.c_str(), &status) != 0) return {};
  return FolderIdentity{status.st_dev, status.st_ino};
}

int open_lock_file(const std::string& path) noexcept {
  const int opened =
      ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
  // Locking another user's lock file needs no permission to write.
  return opened < 0 && errno == EACCES
             ? ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
             : opened;
}

}  // namespace

FolderLock::FolderLock(const std::string& folder, int max_wait_ms) noexcept {
  try {
    if (!is_local(folder)) return;
    // The last holder may have removed the folder, and another folder may have the name now.
    while (take(folder, max_wait_ms) && identity_of(folder) != identity_) give_back();
  } catch (const std::exception&) {
    // Memory is too short for a path: not held.
  }
  if (!is_held()) give_back();
}

FolderLock::~FolderLock() {
  give_back();
}

bool FolderLock::take(const std::string& folder, int max_wait_ms) {
  const std::optional<FolderIdentity> identity = identity_of(folder);
  if (!identity) return false;
  if (!kLocksKeepThreadsOut &&
      within(max_wait_ms, [&] { return hold(*identity); }) != Attempt::locked) {
    return false;
  }
  identity_ = identity;
  FileDescriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  Attempt attempt = lock_within(opened, max_wait_ms);
  if (attempt == Attempt::impossible) {
    opened = FileDescriptor(open_lock_file(folder + "/.lock"));
    attempt = lock_within(opened, max_wait_ms);
  }
  if (attempt == Attempt::locked) file_ = std::move(opened);
  return is_held();
}

void FolderLock::give_back() noexcept {
  if (is_held()) {
    // Closing is not enough: a forked child may have the descriptor, too.
    unlock(file_.get());
    file_.close();
  }
  if (identity_ && !kLocksKeepThreadsOut) let_go(*identity_);
  identity_.reset();
}

}  // namespace tfrfast
