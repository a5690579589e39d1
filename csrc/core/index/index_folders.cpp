#include "core/index/index_folders.h"

#include <cerrno>
#include <chrono>
#include <utility>

#include "core/base/error.h"
#include "core/base/waiting.h"
#include "core/index/index_file.h"
#include "core/index/index_places.h"
#include "core/storage/folders.h"
#include "core/storage/own_file.h"
#include "core/storage/storage.h"

namespace tfrfast {

IndexFolder::IndexFolder(std::string folder, const std::string& access)
    : folder_(std::move(folder)) {
  if (is_local(folder_)) {
    try {
      refuse_link_of_stranger(folder_);
      for (const std::string& file : list_folder(folder_)) {
        if (is_loose_index(file)) loose_.insert(name_of_loose(file));
      }
      is_listed_ = true;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::stale_index) {
        why_not_ = error.message();
        is_listed_ = true;
        return;
      }
      // A folder that may be entered but not listed: names have to be tried.
      is_listed_ = error.system_error() == ENOENT || error.system_error() == ENOTDIR;
      if (is_listed_) return;
    }
  }
  try {
    index_ = FolderIndex::load(folder_index_path(folder_), access);
  } catch (const Error& error) {
    why_not_ = error.message();
  }
  if (!is_local(folder_)) is_listed_ = index_ != nullptr;
}

std::shared_ptr<const IndexFolder> IndexFolders::at(const std::string& folder,
                                                    const std::string& access) {
  return again(folder, nullptr, access);
}

std::shared_ptr<const IndexFolder> IndexFolders::again(
    const std::string& folder, const std::shared_ptr<const IndexFolder>& known,
    const std::string& access) {
  std::unique_lock lock(mutex_);
  while (is_looking_) {
    looked_.wait_for(lock, std::chrono::milliseconds(100));
    if (WaitCheck* const check = wait_check(); is_looking_ && check != nullptr) {
      lock.unlock();
      check->check();
      lock.lock();
    }
  }
  if (const auto entry = folders_[folder]; entry != known) return entry;
  is_looking_ = true;
  lock.unlock();
  const auto looked = [&] {
    lock.lock();
    is_looking_ = false;
    looked_.notify_all();
  };
  std::shared_ptr<const IndexFolder> found;
  try {
    found = std::make_shared<const IndexFolder>(folder, access);
  } catch (...) {
    looked();
    throw;
  }
  looked();
  return folders_[folder] = std::move(found);
}

std::shared_ptr<const FolderIndex> IndexFolders::index_now(const std::string& folder) {
  std::shared_ptr<const FolderIndex> index;
  {
    const std::scoped_lock lock(mutex_);
    index = indexes_[folder];
  }
  if (index != nullptr && index->is_current()) return index;
  try {
    index = FolderIndex::load(folder_index_path(folder));
  } catch (const Error&) {
    index = nullptr;  // nobody finds anything in it
  }
  const std::scoped_lock lock(mutex_);
  return indexes_[folder] = index;
}

bool IndexFolders::is_first_check(const std::string& folder) {
  const std::scoped_lock lock(mutex_);
  return checked_.insert(folder).second;
}

}  // namespace tfrfast
