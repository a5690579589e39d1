// Extends and rewrites the index of a folder.
//
// On this machine, an index is extended in place, under the folder's lock. A new part is written
// after the last part. The header is written last, and makes the new part count. A process that has
// the file open keeps seeing the old parts. When added parts have doubled the file, and on demand,
// the file is replaced by a file without obsolete entries. A process may be killed at any moment:
// then the old index is whole, or the new index.
//
// A file of indexes belongs to its user. Beside another user's file, this user gets a second file,
// so that all users still believe their own indexes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/index/folder_index.h"
#include "core/index/index_places.h"
#include "core/index/shard_index.h"
#include "core/storage/local/folder_lock.h"
#include "core/storage/local/writable_file.h"

namespace tfrfast {

// A shard's index that is about to be added. Other additions to the folder wait until this object
// is destroyed.
class IndexAddition {
 public:
  // Writes the index where no reader looks. Makes the folder. Throws Error io, without any change,
  // for a full disk, a folder or file of another user, or a file of a later version.
  IndexAddition(const IndexPlace& place, const ShardIndex& index);
  IndexAddition(const IndexAddition&) = delete;
  IndexAddition& operator=(const IndexAddition&) = delete;

  // Makes the index count, with `facts` about the shard's file. Call once. Throws Error io. If
  // durable, the index is flushed to the disk. Otherwise a power cut may lose this index and every
  // index added since the last compaction.
  void commit(const ShardFacts& facts, bool durable);

  const std::string& path() const noexcept { return path_; }

 private:
  DirectoryEntry& entry() noexcept;
  bool begin_in_place();

  const IndexPlace place_;
  std::string path_;
  FolderLock lock_;
  std::vector<std::uint8_t> part_;
  std::size_t beginning_bytes_ = 0;   // of the part, before its sections
  std::optional<WritableFile> file_;  // empty if the index has to be rewritten
  FolderHeader header_ = {};
};

// Adds an index with its own facts, unflushed. Returns the path of the file. Throws Error io.
std::string keep_index(const IndexPlace& place, const ShardIndex& index);

// For a shard that was moved to `shard_path`: adds the index that `made` holds for the shard under
// its old `name`. Throws Error io, and stale_index if `made` has no such shard.
void add_moved_index(const FolderIndex& made, const std::string& name, const IndexPlace& place,
                     const std::string& shard_path);

// Rewrites this user's index of `folder`, flushed to the disk, as one part without obsolete
// entries: older entries of a shard and, if `folder` is the data folder's sibling, entries of
// shards that no longer exist. Does nothing to an index of one part. Other processes wait. A
// process that dies leaves the index unchanged. Throws Error io.
void compact_index(const std::string& folder);
// Like compact_index(), for callers that can do without. Never throws.
void try_to_compact_index(const std::string& folder) noexcept;

// Adds all entries of the index at `from` to the index of `folder`. New entries count before old
// ones. Throws Error io and stale_index.
void join_index(const std::string& folder, const std::string& from);

// Checks that indexes can be kept in `folder`, now rather than after a long walk. Makes the folder.
// With `is_tried`, checks only the index's name. Throws Error io.
void check_index_folder(const std::string& folder, const std::string& advice,
                        bool is_tried = false);

}  // namespace tfrfast
