#include "core/storage/local/folder_lock.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <exception>
#include <utility>

#include "core/storage/local/system_calls.h"

namespace tfrfast {
namespace {

FileDescriptor open_lock_file(const std::string& path) noexcept {
  constexpr int kFlags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  const int opened = ::open(path.c_str(), O_RDWR | O_CREAT | kFlags, 0666);
  // Locking another user's lock file needs no permission to write.
  return FileDescriptor(opened < 0 && errno == EACCES ? ::open(path.c_str(), O_RDONLY | kFlags)
                                                      : opened);
}

// Returns the locked file. Without a descriptor, the lock is taken, or locking is impossible.
FileDescriptor lock_folder(const std::string& folder, int max_wait_ms) {
  FileDescriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  int failed = lock_within(opened.get(), OpenLock::alone, max_wait_ms);
  if (failed != 0 && failed != EWOULDBLOCK) {
    opened = open_lock_file(folder + "/.lock");
    failed = lock_within(opened.get(), OpenLock::alone, max_wait_ms);
  }
  return failed == 0 ? std::move(opened) : FileDescriptor();
}

}  // namespace

FolderLock::FolderLock(const std::string& folder, int max_wait_ms) noexcept {
  try {
    struct stat before, now;
    while (::stat(folder.c_str(), &before) == 0) {
      FileDescriptor locked = lock_folder(folder, max_wait_ms);
      if (locked.number() < 0) return;
      // The last holder may have removed the folder, and another folder may have the name now.
      if (::stat(folder.c_str(), &now) == 0 && now.st_dev == before.st_dev &&
          now.st_ino == before.st_ino) {
        file_ = std::move(locked);
        return;
      }
      unlock(locked.get());
    }
  } catch (const std::exception&) {
    // Memory is too short for a path: not held.
  }
}

FolderLock::~FolderLock() {
  // Closing is not enough: a forked child may have the descriptor, too.
  if (is_held()) unlock(file_.get());
}

}  // namespace tfrfast
