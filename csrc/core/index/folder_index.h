// The index of a folder: what is known about each of its shards, and where the rest lies.
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
#include "core/storage/stored_file.h"

namespace tfrfast {

// Immutable; safe from many threads. The directory is in memory. Sections are read when a shard is
// opened, from any storage: where it is mapped they stay there, else each shard costs one read.
class FolderIndex {
 public:
  // Reads header and directory of the index at `path`. Null if there is none. Throws Error
  // stale_index if they are not whole or have an unknown version, and io.
  static std::shared_ptr<const FolderIndex> load(const std::string& path,
                                                 const std::string& access = "");

  const std::string& path() const noexcept { return file_->path(); }
  const FileFacts& file_facts() const noexcept { return file_->facts(); }
  // Whether the file of that name is still the one that was read.
  bool is_current() const noexcept;

  // The shards, by their names in ascending order of bytes.
  std::span<const DirectoryEntry> entries() const noexcept { return {entries_, count_}; }
  std::string_view name_of(const DirectoryEntry& entry) const noexcept {
    return {names_ + entry.name_at, entry.name_bytes};
  }
  // Null if there is no such name.
  const DirectoryEntry* find(std::string_view name) const noexcept;

  // Throws Error stale_index if the sections are damaged, io if they cannot be read.
  std::shared_ptr<const ShardIndex> open(const DirectoryEntry& entry) const;
  // All of a shard's sections as they are. Throws Error io and stale_index.
  std::shared_ptr<const IndexBytes> bytes_of(const DirectoryEntry& entry) const;

 private:
  FolderIndex(std::shared_ptr<const StoredFile> file, const FolderHeader& header);
  static std::shared_ptr<const FolderIndex> load_from(
      const std::shared_ptr<const StoredFile>& file);
  bool makes_sense() const noexcept;

  const std::shared_ptr<const StoredFile> file_;
  std::vector<std::uint64_t> directory_;
  const DirectoryEntry* entries_ = nullptr;
  std::size_t count_ = 0;
  const char* names_ = nullptr;
  std::size_t names_bytes_ = 0;
};

// Whether the file is the index of a folder, of a version that is not known here.
bool is_newer_folder_index(const std::string& path) noexcept;

}  // namespace tfrfast
