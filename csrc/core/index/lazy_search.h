// Finds the shards that can be opened later.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/index/index_folders.h"
#include "core/index/shard_slot.h"
#include "core/storage/local/local_facts.h"

namespace tfrfast {

// The folders of a set's shards, and the contents of their indexes. Safe from many threads.
class LazyFolders {
 public:
  struct Folder {
    LazyFolder lazy;
    std::shared_ptr<const IndexFolder> indexes;
    std::uint64_t data = 0;  // data folder of the entries; see IndexPlace
  };

  LazyFolders(const IndexOptions& options, IoMode io);

  // `prefix` is a path up to its last slash. Null if the folder has no index.
  const Folder* at(const std::string& prefix);
  const IndexOptions& options() const noexcept { return options_; }

 private:
  const IndexOptions options_;  // with `folders` set
  const IoMode io_;
  std::mutex mutex_;
  std::map<std::string, const Folder*> by_prefix_;
  std::deque<Folder> folders_;
};

// The search of one thread. Fastest if shards come folder by folder and in order.
class LazySearch {
 public:
  explicit LazySearch(LazyFolders& folders) : folders_(folders) {}

  // Returns the size of a local file. If an index of the file's folder describes the present file,
  // fills `lazy`, unless null. Throws Error io, and invalid for anything but a regular file.
  std::uint64_t look_at(const std::string& path, LazyShard* lazy);
  // Like look_at(), for an object that a listing has found. A found object counts as opened. Leaves
  // `lazy` alone for other objects.
  void look_at_listed(const std::string& url, LazyShard* lazy);

 private:
  void look_in_index(const std::string& path, const FileFacts& facts, LazyShard* lazy);
  std::span<const DirectoryEntry> find(const FolderIndex& index, std::string_view name) noexcept;
  bool may_be_lazy(const DirectoryEntry& entry, const FolderIndex& index,
                   const FileFacts& facts) const noexcept;

  LazyFolders& folders_;
  LocalExaminer examiner_;
  std::string prefix_;
  const LazyFolders::Folder* folder_ = nullptr;
  bool knows_prefix_ = false;
  std::size_t next_ = 0;  // the entry after the last entry found
};

}  // namespace tfrfast
