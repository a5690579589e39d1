// Saves and loads the index of one shard as a file.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "core/index/folder_writing.h"
#include "core/storage/local/folders.h"

namespace tfrfast::testing {

// `path` is the file `index` of a folder.
inline void save_index(const ShardIndex& index, const std::string& path) {
  ::unlink(path.c_str());
  REQUIRE(keep_index({folder_of(path), "shard", 0}, index) == path);
}

// Null if the file does not exist. Throws like FolderIndex.
inline std::shared_ptr<const ShardIndex> load_index(const std::string& path) {
  const auto file = FolderIndex::load(path);
  if (file == nullptr) return nullptr;
  REQUIRE(file->entries().size() == 1);
  return file->open(file->entries().front());
}

}  // namespace tfrfast::testing
