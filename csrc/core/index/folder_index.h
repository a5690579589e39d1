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

// What the file held when it was read. Immutable; safe from many threads. The directory is in
// memory. Sections are read when a shard is opened, from any storage: where the file is mapped they
// stay there, else each shard costs one read.
class FolderIndex {
 public:
  // Reads the header and all directories of the index at `path`. Null if there is none. Throws
  // Error stale_index if the header or the first directory is not whole or has an unknown version,
  // and io. Somebody may add to the file meanwhile.
  static std::shared_ptr<const FolderIndex> load(const std::string& path,
                                                 const std::string& access = "");

  const std::string& path() const noexcept { return file_->path(); }
  const FileFacts& file_facts() const noexcept { return file_->facts(); }
  std::uint64_t part_count() const noexcept { return part_count_; }
  // What is wrong with parts that were left out, as a power cut may leave them; else empty.
  const std::string& left_out() const noexcept { return left_out_; }

  // The shards, by their names in ascending order of bytes, then by their data folders.
  std::span<const DirectoryEntry> entries() const noexcept { return entries_; }
  std::string_view name_of(const DirectoryEntry& entry) const noexcept {
    return {names_.data() + entry.name_at, entry.name_bytes};
  }
  // Those of that name, each in another data folder. Mostly there is one at most.
  std::span<const DirectoryEntry> find(std::string_view name) const noexcept;
  // The one of that data folder; null if there is none.
  const DirectoryEntry* find(std::string_view name, std::uint64_t data) const noexcept;

  // Throws Error stale_index if the sections are damaged, io if they cannot be read.
  std::shared_ptr<const ShardIndex> open(const DirectoryEntry& entry) const;
  // All of a shard's sections as they are. Throws Error io and stale_index.
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

// What the header must be for this tfrfast to read or add to the index: Error stale_index says what
// is wrong otherwise.
void check_folder_header(const std::string& path, const FolderHeader& header);

// Whether the file is the index of a folder, of a later version than is known here.
bool is_newer_folder_index(const std::string& path) noexcept;

}  // namespace tfrfast
