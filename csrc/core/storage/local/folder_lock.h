// One process at a time changes certain files of a folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace tfrfast {

// Device and inode: the same for every path of a folder.
using FolderIdentity = std::pair<std::uint64_t, std::uint64_t>;

// Held from its making to its end, if `is_held`. A process that dies gives it back. Locks the
// folder itself or, on filesystems that cannot do that, the file `.lock` in it.
class FolderLock {
 public:
  // Waits for others, but no longer than `max_wait_ms`. Not held after that, and where nothing can
  // be locked. Never throws.
  FolderLock(const std::string& folder, int max_wait_ms) noexcept;
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  bool is_held() const noexcept { return descriptor_ >= 0; }

 private:
  bool take(const std::string& folder, int max_wait_ms);
  void give_back() noexcept;

  std::optional<FolderIdentity> identity_;  // of the folder that is held
  int descriptor_ = -1;
};

}  // namespace tfrfast
