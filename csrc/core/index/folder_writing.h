// Adds to the index of a folder, and writes it anew.
//
// On this machine it is added to in place, under the folder's lock: a new part goes behind the last
// one, and the header, which is written last, makes it count. Whoever has the file open keeps what
// was there. When what was added has doubled it, and on demand, the file is replaced by one without
// what no longer counts. A process may be killed at any moment: the old index is whole then, and so
// is the new.
//
// A file of indexes belongs to its user. Where another user has one already, this user's is a
// second one beside it, so that everyone still believes those of their own.
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
#include "core/storage/local/in_place.h"

namespace tfrfast {

// A shard's index that is about to be added. Whoever adds another one to this folder waits until
// this is destroyed.
class IndexAddition {
 public:
  // Writes it where nobody looks. Makes the folder. Throws Error io (a full disk, a
  // folder or a file that is not ours, or one of a later version), and then nothing has changed.
  IndexAddition(const IndexPlace& place, const ShardIndex& index);
  IndexAddition(const IndexAddition&) = delete;
  IndexAddition& operator=(const IndexAddition&) = delete;

  // From now on it counts, with what `facts` say about the shard's file. Call it once. Throws Error
  // io. Durable: it is on the disk then. If not, a power cut may lose it, and what was added since
  // the index was last compacted.
  void commit(const ShardFacts& facts, bool durable);

  const std::string& path() const noexcept { return path_; }

 private:
  DirectoryEntry& entry() noexcept;
  bool begin_in_place();

  const IndexPlace place_;
  std::string path_;
  FolderLock lock_;
  std::vector<std::uint8_t> part_;
  std::size_t beginning_bytes_ = 0;  // of the part, before its sections
  std::optional<FileInPlace> file_;  // none where it has to be written anew
  FolderHeader header_ = {};
};

// Adds an index with what it says itself, not flushed. Returns where it is now. Throws Error io.
std::string keep_index(const IndexPlace& place, const ShardIndex& index);

// For a shard that now lies at `shard_path`, adds what `made` says of the one that its writer
// called `name`: the same file, which was moved. Throws Error io, and stale_index if `made` knows
// no such shard.
void add_moved_index(const FolderIndex& made, const std::string& name, const IndexPlace& place,
                     const std::string& shard_path);

// Writes this user's index of `folder` anew, flushed to the disk, as one part without what no
// longer counts: older entries, and those of shards that are no longer in the data folder, if
// `folder` is its sibling. Nothing happens if there is one part only, or the folder is not of this
// machine. Others wait; a process that dies leaves everything as it was. Throws Error io.
void compact_index(const std::string& folder);
// The same, for those who can do without. Never throws.
void try_to_compact_index(const std::string& folder) noexcept;

// Puts all that the index at `from` holds into the one of `folder`, in which it counts before what
// was there. Throws Error io and stale_index.
void join_index(const std::string& folder, const std::string& from);

// Checks that indexes can be kept in `folder`, now rather than after a long scan. Makes it. With
// `is_tried`, looks at the name alone. Throws Error io.
void check_index_folder(const std::string& folder, const std::string& advice,
                        bool is_tried = false);

}  // namespace tfrfast
