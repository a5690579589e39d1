// A shard of a set: open, or described by an index so well that it is opened when it is first read.
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

namespace tfrfast {

// What shards of one folder have in common that are not open yet. The folder is one of this machine
// or of a far storage.
struct LateFolder {
  std::string prefix;           // of their paths, as they were given
  std::string absolute_prefix;  // the same, after the process has changed its folder
  IoMode io = IoMode::automatic;
  bool is_far = false;
  std::string access;  // how to reach it, if it is far
  // While it lives, what a cache has of the folder stays there; null without a cache.
  std::shared_ptr<const void> cached;
};

// A shard that is not open yet. `entry` lies in an index of the folder, and describes the file that
// had these facts. There is no damage.
struct LateShard {
  const LateFolder* folder = nullptr;  // outlives the slot
  std::shared_ptr<const FolderIndex> index;
  const DirectoryEntry* entry = nullptr;
  FileFacts facts;
  std::string version;  // of an object, as the client has described it
};

// A shard's index, which is loaded if nobody has opened the shard. Needs neither the slot nor the
// shard.
struct SlotIndex {
  std::shared_ptr<const ShardIndex> loaded;
  std::shared_ptr<const FolderIndex> folder;  // of an index that is not loaded
  const DirectoryEntry* entry = nullptr;

  // Throws Error stale_index if the index is damaged, io if it cannot be read.
  std::shared_ptr<const ShardIndex> load() const {
    return loaded != nullptr ? loaded : folder->open(*entry);
  }
};

// Once it is set, it is safe from many threads. Nobody waits and no lock is held while a shard is
// opened: if two threads do so at the same time, the result of one of them stays.
class ShardSlot {
 public:
  ShardSlot() = default;
  ~ShardSlot() { delete opened(); }
  ShardSlot(const ShardSlot&) = delete;
  ShardSlot& operator=(const ShardSlot&) = delete;

  void set(IndexedShard shard) { opened_ = new IndexedShard(std::move(shard)); }
  void set(LateShard late) noexcept { late_ = std::move(late); }

  // Null if it has not been opened yet.
  const IndexedShard* opened() const noexcept { return opened_.load(std::memory_order_acquire); }
  // Opens it, if nobody has. Throws Error stale_index if the file was removed, replaced or changed
  // since the slot was set, or the index is damaged; io if it cannot be read.
  const IndexedShard& open() const;

  // These open nothing.
  std::string path() const;
  std::string name() const;  // the path without folders
  const FileFacts& file_facts() const noexcept;
  std::uint64_t file_bytes() const noexcept;  // as the index says
  std::uint64_t stream_bytes() const noexcept;
  std::uint64_t record_count() const noexcept;
  Compression compression() const noexcept;
  SlotIndex index() const;
  const std::string& index_path() const noexcept;  // empty if the index was built in memory
  bool is_inflated() const noexcept;
  bool is_far() const noexcept;

 private:
  const ShardEntry& entry() const noexcept { return late_.entry->shard; }
  std::string_view late_name() const noexcept;

  LateShard late_;
  mutable std::atomic<const IndexedShard*> opened_{nullptr};
};

}  // namespace tfrfast
