// The index of a folder: the facts about each shard, and the place of each shard's sections.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/index/folder_format.h"
#include "core/index/index_bytes.h"
#include "core/index/shard_index.h"
#include "core/storage/storage_options.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

// The contents of the file when it was read. Immutable. Safe from many threads. The directory is in
// memory. Sections are read when a shard is opened, from any storage: sections of a mapped file
// stay in the mapping, and otherwise each shard costs one read.
class FolderIndex {
 public:
  // Reads the header and all directories of the index at `path`. Null if the file does not exist.
  // Throws Error stale_index if the header or the first directory is damaged or has an unknown
  // version, and io. Another process may add to the file meanwhile.
  static std::shared_ptr<const FolderIndex> load(const std::string& path,
                                                 const StorageOptions& options = {});

  const std::string& path() const noexcept { return file_->path(); }
  const FileFacts& file_facts() const noexcept { return file_->facts(); }
  std::uint64_t part_count() const noexcept { return part_count_; }
  // Names the parts that were left out because they are damaged, for example after a power cut.
  // Empty if no part was left out.
  const std::string& left_out() const noexcept { return left_out_; }

  // The shards, ordered by the bytes of their names, then by data folder.
  std::span<const DirectoryEntry> entries() const noexcept { return entries_; }
  std::string_view name_of(const DirectoryEntry& entry) const noexcept {
    return {names_.data() + entry.name_at, entry.name_bytes};
  }
  // All entries with this name, each for another data folder. Usually one or none.
  std::span<const DirectoryEntry> find(std::string_view name) const noexcept;
  // The entry for this data folder, or null.
  const DirectoryEntry* find(std::string_view name, std::uint64_t data) const noexcept;

  // Throws Error stale_index if the sections are damaged, io if they cannot be read.
  std::shared_ptr<const ShardIndex> open(const DirectoryEntry& entry) const;
  // Returns all of a shard's sections unchanged. Throws Error io and stale_index.
  std::shared_ptr<const IndexBytes> bytes_of(const DirectoryEntry& entry) const;

 private:
  explicit FolderIndex(std::shared_ptr<const StoredFile> file) : file_(std::move(file)) {}
  class Parts;
  void read(const Parts& parts);
  bool take(const Parts& parts, std::uint64_t at, const PartHeader& part);

  const std::shared_ptr<const StoredFile> file_;
  std::vector<DirectoryEntry> entries_;
  std::string names_;
  std::uint64_t part_count_ = 0;
  std::string left_out_;
};

// Throws Error stale_index, with the fault, if this tfrfast cannot read or extend an index with
// this header.
void check_folder_header(const std::string& path, const FolderHeader& header);

// Whether the file is a folder's index of a later version than this tfrfast knows.
bool is_newer_folder_index(const std::string& path) noexcept;

}  // namespace tfrfast
