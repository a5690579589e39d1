#include "core/index/folder_index.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/index/index_sections.h"
#include "core/storage/in_place.h"

namespace tfrfast {
namespace {

// The same file without its mapping, if it is still there. The pages of a mapping that were read
// once would count as memory of this process.
std::shared_ptr<const StoredFile> unmapped(const std::shared_ptr<const StoredFile>& file) {
  if (file->mapping() == nullptr) return file;
  try {
    auto again = StoredFile::open(file->path(), IoMode::pread, file->access());
    if (file->is_still(again->facts())) return again;
  } catch (const Error&) {
    // It was replaced.
  }
  return file;
}

}  // namespace

std::shared_ptr<const FolderIndex> FolderIndex::load(const std::string& path,
                                                     const std::string& access) {
  std::shared_ptr<const StoredFile> file;
  try {
    file = open_own_file(path, access);
  } catch (const Error& error) {
    if (error.system_error() == ENOENT || error.system_error() == ENOTDIR) return nullptr;
    throw;
  }
  try {
    return load_from(file);
  } catch (const Error& error) {
    // A copy of the index may be damaged where the index is not.
    if (error.kind() != ErrorKind::stale_index || !file->mend({0, file->bytes()})) throw;
  }
  return load_from(file);
}

std::shared_ptr<const FolderIndex> FolderIndex::load_from(
    const std::shared_ptr<const StoredFile>& file) {
  const std::string& path = file->path();
  FolderHeader header;
  if (file->bytes() < sizeof header) refuse_index(path, "it is shorter than an index's header.");
  file->read(0, reinterpret_cast<std::uint8_t*>(&header), sizeof header);
  if (std::memcmp(header.magic, kFolderMagic, sizeof kFolderMagic) != 0) {
    refuse_index(path, "it does not begin like the index of a folder.");
  }
  if (header.version != kFolderVersion) {
    refuse_index(path, "it has version " + std::to_string(header.version) +
                           " and this tfrfast reads version " + std::to_string(kFolderVersion) +
                           ".");
  }
  if (header.header_crc != crc_of(header)) {
    refuse_index(path, "its header does not match its checksum.");
  }
  const std::uint64_t left = file->bytes() - sizeof header;
  if (header.index_bytes != file->bytes() || header.directory_bytes > left ||
      header.directory_bytes % kSectionAlignment != 0 ||
      header.shard_count > header.directory_bytes / sizeof(DirectoryEntry)) {
    refuse_index(path, "it was cut short, or its header contradicts itself.");
  }
  if (header.directory_bytes > max_memory_bytes()) {
    refuse_index(path, "it claims to hold more than there is memory for.");
  }
  // No std::make_shared: only load() may make one.
  std::shared_ptr<const FolderIndex> index(new FolderIndex(file, header));
  if (crc32c(tfrfast::bytes_of(index->directory_.data()),
             static_cast<std::size_t>(header.directory_bytes)) != header.directory_crc) {
    refuse_index(path, "its directory does not match its checksum.");
  }
  if (!index->makes_sense()) refuse_index(path, "its directory makes no sense.");
  return index;
}

FolderIndex::FolderIndex(std::shared_ptr<const StoredFile> file, const FolderHeader& header)
    : file_(std::move(file)),
      directory_(static_cast<std::size_t>(header.directory_bytes) / sizeof(std::uint64_t)),
      entries_(reinterpret_cast<const DirectoryEntry*>(directory_.data())),
      count_(static_cast<std::size_t>(header.shard_count)),
      names_(reinterpret_cast<const char*>(entries_ + count_)),
      names_bytes_(static_cast<std::size_t>(header.directory_bytes) -
                   count_ * sizeof(DirectoryEntry)) {
  unmapped(file_)->read(sizeof header, reinterpret_cast<std::uint8_t*>(directory_.data()),
                        static_cast<std::size_t>(header.directory_bytes));
}

bool FolderIndex::makes_sense() const noexcept {
  const std::uint64_t sections_at = sizeof(FolderHeader) + directory_.size() * sizeof directory_[0];
  std::string_view before;
  for (const DirectoryEntry& each : entries()) {
    const bool lies_inside =
        each.name_at <= names_bytes_ && each.name_bytes <= names_bytes_ - each.name_at &&
        each.sections.at >= sections_at && each.sections.at % kSectionAlignment == 0 &&
        each.sections.at <= file_->bytes() &&
        each.sections.bytes <= file_->bytes() - each.sections.at;
    if (!lies_inside || name_of(each) <= before) return false;
    before = name_of(each);
  }
  return true;
}

bool FolderIndex::is_current() const noexcept {
  try {
    return file_->is_still(file_->facts_now());
  } catch (const std::exception&) {
    return false;
  }
}

const DirectoryEntry* FolderIndex::find(std::string_view name) const noexcept {
  const auto found = std::lower_bound(entries_, entries_ + count_, name,
                                      [this](const DirectoryEntry& each, std::string_view wanted) {
                                        return name_of(each) < wanted;
                                      });
  return found != entries_ + count_ && name_of(*found) == name ? found : nullptr;
}

std::shared_ptr<const IndexBytes> FolderIndex::bytes_of(const DirectoryEntry& entry) const {
  return std::make_shared<const IndexBytes>(file_, entry.sections.at, entry.sections.bytes);
}

std::shared_ptr<const ShardIndex> FolderIndex::open(const DirectoryEntry& entry) const {
  const std::uint32_t checksum = crc32c(tfrfast::bytes_of(&entry.shard), sizeof entry.shard);
  try {
    return load_sections(bytes_of(entry), entry.shard, checksum);
  } catch (const Error& error) {
    const FileRange sections{entry.sections.at, entry.sections.bytes};
    if (error.kind() != ErrorKind::stale_index || !file_->mend(sections)) throw;
  }
  return load_sections(bytes_of(entry), entry.shard, checksum);
}

bool is_newer_folder_index(const std::string& path) noexcept {
  FolderHeader header;
  return peek(path, &header, sizeof header) &&
         std::memcmp(header.magic, kFolderMagic, sizeof kFolderMagic) == 0 &&
         header.version != kFolderVersion;
}

}  // namespace tfrfast
