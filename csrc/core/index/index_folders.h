// Remembers the contents of index folders from the first look.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/index/folder_index.h"
#include "core/storage/storage_options.h"

namespace tfrfast {

// One folder. Several users may keep indexes in it, each user in a separate file.
class IndexFolder {
 public:
  // Never throws for a missing or damaged index.
  explicit IndexFolder(const std::string& folder, const StorageOptions& options = {});

  const std::vector<std::shared_ptr<const FolderIndex>>& indexes() const noexcept {
    return indexes_;
  }
  const std::string& why_not() const noexcept { return why_not_; }  // why an index is missing

 private:
  std::vector<std::shared_ptr<const FolderIndex>> indexes_;
  std::string why_not_;
};

// Looks into each folder once. Safe from many threads.
class IndexFolders {
 public:
  std::shared_ptr<const IndexFolder> at(const std::string& folder,
                                        const StorageOptions& options = {});

  // True on the first call for `folder`. The caller then checks that the folder is writable.
  bool is_first_check(const std::string& folder);

 private:
  std::mutex mutex_;  // not held during a look, which may wait for a network
  std::condition_variable looked_;
  bool is_looking_ = false;
  std::map<std::string, std::shared_ptr<const IndexFolder>> folders_;
  std::set<std::string> checked_;
};

}  // namespace tfrfast
