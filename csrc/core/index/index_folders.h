// What folders of indexes hold, as it was when somebody looked.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/index/folder_index.h"

namespace tfrfast {

// One folder. Several users may keep indexes in it, each in a file of its own.
class IndexFolder {
 public:
  // Never throws for what is missing or damaged.
  explicit IndexFolder(const std::string& folder, const std::string& access = "");

  const std::vector<std::shared_ptr<const FolderIndex>>& indexes() const noexcept {
    return indexes_;
  }
  const std::string& why_not() const noexcept { return why_not_; }  // why there are not more

 private:
  std::vector<std::shared_ptr<const FolderIndex>> indexes_;
  std::string why_not_;
};

// Looks into each folder once. Safe from many threads.
class IndexFolders {
 public:
  std::shared_ptr<const IndexFolder> at(const std::string& folder, const std::string& access = "");

  // Whether nobody has asked this before, who then checks that it can be written to.
  bool is_first_check(const std::string& folder);

 private:
  std::mutex mutex_;  // not held during a look, which may wait for a network
  std::condition_variable looked_;
  bool is_looking_ = false;
  std::map<std::string, std::shared_ptr<const IndexFolder>> folders_;
  std::set<std::string> checked_;
};

}  // namespace tfrfast
