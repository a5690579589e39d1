// Lets one process at a time change certain files of a folder.
#pragma once

#include <string>

#include "core/storage/local/file_descriptor.h"

namespace tfrfast {

// Holds the lock from construction to destruction, if is_held(). The lock of a dead process ends.
// Locks the folder itself or, on filesystems without such locks, the file `.lock` in the folder.
class FolderLock {
 public:
  // Waits for other holders, at most `max_wait_ms`. Not held after that, and not if locking is
  // impossible. Never throws.
  FolderLock(const std::string& folder, int max_wait_ms) noexcept;
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  bool is_held() const noexcept { return file_.number() >= 0; }

 private:
  FileDescriptor file_;
};

}  // namespace tfrfast
