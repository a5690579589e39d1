// A shard of a set: open, or described by an index so fully that opening can wait for the first
// read.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/index/folder_index.h"
#include "core/index/opening.h"
#include "core/storage/file_facts.h"
#include "core/storage/storage_options.h"

namespace tfrfast {

// The common facts of the unopened shards of a folder, on this machine or in a remote storage.
struct LazyFolder {
  std::string prefix;           // of the shards' paths, as given
  std::string absolute_prefix;  // the absolute path, valid after a change of the current folder
  IoMode io = IoMode::automatic;
  bool is_remote = false;
  StorageOptions options;  // of the storage, and its caches
  // Keeps the folder's files in a cache while it lives. Null without a cache.
  std::shared_ptr<const void> cached;
};

// A shard that is not open yet. `entry` lies in an index of the folder, and describes the file with
// these facts. The shard has no damage.
struct LazyShard {
  const LazyFolder* folder = nullptr;  // outlives the slot
  std::shared_ptr<const FolderIndex> index;
  const DirectoryEntry* entry = nullptr;
  FileFacts facts;
  std::string version;  // of an object, as the client described it
};

// A shard's index, loaded only if the shard is open. Independent of the slot and the shard.
struct SlotIndex {
  std::shared_ptr<const ShardIndex> loaded;
  std::shared_ptr<const FolderIndex> folder;  // of an index that is not loaded
  const DirectoryEntry* entry = nullptr;

  // Throws Error stale_index if the index is damaged, io if the index cannot be read.
  std::shared_ptr<const ShardIndex> load() const {
    return loaded != nullptr ? loaded : folder->open(*entry);
  }
};

// Safe from many threads once set. Opening a shard holds no lock and waits for no thread: if two
// threads open a shard at the same time, one result stays.
class ShardSlot {
 public:
  ShardSlot() = default;
  ~ShardSlot() { delete opened(); }
  ShardSlot(const ShardSlot&) = delete;
  ShardSlot& operator=(const ShardSlot&) = delete;

  void set(IndexedShard shard) { opened_ = new IndexedShard(std::move(shard)); }
  void set(LazyShard lazy) noexcept { lazy_ = std::move(lazy); }

  // Null if not opened yet.
  const IndexedShard* opened() const noexcept { return opened_.load(std::memory_order_acquire); }
  // Opens the shard if necessary. Throws Error stale_index if the file was removed, replaced or
  // changed since the slot was set, or if the index is damaged; io if the file cannot be read.
  const IndexedShard& open() const;

  // The functions below open nothing.
  std::string path() const;
  std::string name() const;  // the path without folders
  const FileFacts& file_facts() const noexcept;
  std::uint64_t file_bytes() const noexcept;  // from the index
  std::uint64_t stream_bytes() const noexcept;
  std::uint64_t record_count() const noexcept;
  Compression compression() const noexcept;
  SlotIndex index() const;
  const std::string& index_path() const noexcept;  // empty if the index was built in memory
  bool is_inflated() const noexcept;
  bool is_remote() const noexcept;

 private:
  const ShardEntry& entry() const noexcept { return lazy_.entry->shard; }
  std::string_view lazy_name() const noexcept;

  LazyShard lazy_;
  mutable std::atomic<const IndexedShard*> opened_{nullptr};
};

}  // namespace tfrfast
