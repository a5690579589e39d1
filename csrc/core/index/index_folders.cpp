#include "core/index/index_folders.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "core/base/error.h"
#include "core/base/waiting.h"
#include "core/index/index_places.h"
#include "core/storage/local/folders.h"
#include "core/storage/local/sidecar.h"
#include "core/storage/storage.h"

namespace tfrfast {
namespace {

// Lists the possible paths of indexes.
std::vector<std::string> index_paths_in(const std::string& folder) {
  const std::string plain = folder_index_path(folder);
  if (!is_local(folder)) return {plain};
  refuse_link_of_stranger(folder);
  std::vector<std::string> paths;
  try {
    for (const std::string& name : list_folder(folder)) {
      if (is_folder_index(name)) paths.push_back(folder + "/" + name);
    }
  } catch (const Error& error) {
    if (error.system_error() == ENOENT || error.system_error() == ENOTDIR) return {};
    // The folder may be entered but not listed.
    paths = {plain};
    if (const std::string own = own_index_path(folder); own != plain) paths.push_back(own);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

IndexFolder::IndexFolder(const std::string& folder, const StorageOptions& options) {
  std::vector<std::string> paths;
  try {
    paths = index_paths_in(folder);
  } catch (const Error& error) {
    why_not_ = error.message();
  }
  for (const std::string& path : paths) {
    try {
      auto index = FolderIndex::load(path, options);
      if (index == nullptr) continue;
      if (!index->left_out().empty()) why_not_ = index->left_out();
      indexes_.push_back(std::move(index));
    } catch (const Error& error) {
      why_not_ = error.message();
    }
  }
}

std::shared_ptr<const IndexFolder> IndexFolders::at(const std::string& folder,
                                                    const StorageOptions& options) {
  std::unique_lock lock(mutex_);
  while (is_looking_) {
    looked_.wait_for(lock, std::chrono::milliseconds(100));
    if (WaitCheck* const check = wait_check(); is_looking_ && check != nullptr) {
      lock.unlock();
      check->check();
      lock.lock();
    }
  }
  if (const auto entry = folders_[folder]; entry != nullptr) return entry;
  is_looking_ = true;
  lock.unlock();
  const auto looked = [&] {
    lock.lock();
    is_looking_ = false;
    looked_.notify_all();
  };
  std::shared_ptr<const IndexFolder> found;
  try {
    found = std::make_shared<const IndexFolder>(folder, options);
  } catch (...) {
    looked();
    throw;
  }
  looked();
  return folders_[folder] = std::move(found);
}

bool IndexFolders::is_first_check(const std::string& folder) {
  const std::scoped_lock lock(mutex_);
  return checked_.insert(folder).second;
}

}  // namespace tfrfast
