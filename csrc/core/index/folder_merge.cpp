#include "core/index/folder_merge.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/index/folder_index.h"
#include "core/index/index_file.h"
#include "core/index/index_folders.h"
#include "core/index/index_places.h"
#include "core/storage/folder_lock.h"
#include "core/storage/folders.h"
#include "core/storage/in_place.h"
#include "core/storage/local_facts.h"
#include "core/storage/storage.h"
#include "core/storage/users.h"

namespace tfrfast {
namespace {

constexpr int kMaxWaitMs = 30'000;
// Merge::if_many: with this share of the sections that there are, each section is written about as
// many times, however many shards there will be.
constexpr std::size_t kManyShare = 8;

// A section of the new index, and where it comes from.
struct Part {
  std::string name;
  ShardEntry shard = {};                 // its places count from the beginning of its sections
  std::uint64_t bytes = 0;               // of its sections
  const DirectoryEntry* kept = nullptr;  // in the old index
  FileFacts loose;                       // of the loose file, if it is not kept
};

// Whether this is still that file. Its ctime does not count: where a file cannot be looked at
// without a trace, setting the trace back is a change of the file, too.
bool is_unchanged(const std::string& path, const FileFacts& facts) {
  const FileFacts now = examine_file(path);
  return now.bytes == facts.bytes && now.mtime_ns == facts.mtime_ns && is_same_file(now, facts);
}

// Sections of a loose index follow its header, and count from the file's beginning.
ShardEntry without_header(ShardEntry shard) {
  for (Section* each : {&shard.damage, &shard.offsets, &shard.seek_points}) {
    if (each->at >= sizeof(IndexHeader)) each->at -= sizeof(IndexHeader);
  }
  return shard;
}

class FolderMerge {
 public:
  explicit FolderMerge(const std::string& folder)
      : folder_(folder), path_(folder_index_path(folder)) {}

  std::size_t run() {
    check_own_name(path_);
    const IndexFolder found(folder_);
    old_ = found.index() != nullptr ? found.index() : load_unless_damaged();
    if (old_ == nullptr && is_newer_folder_index(path_)) return 0;
    if (old_ != nullptr && old_->file_facts().writers.owner != this_user()) return 0;
    for (const std::string& name : found.loose()) add_loose(name);
    const std::size_t collected = parts_.size();
    if (collected == 0) return 0;
    keep_old();
    write();
    remove_loose();
    return collected;
  }

 private:
  // One that cannot be read now, or not by this user, is not replaced.
  std::shared_ptr<const FolderIndex> load_unless_damaged() const {
    try {
      return FolderIndex::load(path_);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::stale_index) throw;
      return nullptr;
    }
  }

  void add_loose(const std::string& name) {
    const std::string path = loose_index_path(folder_, name);
    try {
      const auto index = load_index(path);
      if (index == nullptr || (index->facts().by_writer && !index->facts().settled)) return;
      const FileFacts facts = examine_file(path);
      if (facts.writers.owner != this_user()) return;
      IndexHeader header;
      if (!peek(path, &header, sizeof header) || header.version != kIndexVersion ||
          header.header_crc != crc_of(header)) {
        return;
      }
      parts_.push_back(
          {name, without_header(header.shard), header.index_bytes - sizeof header, nullptr, facts});
    } catch (const Error&) {
      // It stays where it is, and whoever looks at it is told why it cannot be used.
    }
  }

  void keep_old() {
    if (old_ == nullptr) return;
    const std::set<std::string> present = names_in_data_folder();
    std::set<std::string> taken;
    for (const Part& each : parts_) taken.insert(each.name);
    for (const DirectoryEntry& entry : old_->entries()) {
      const std::string name(old_->name_of(entry));
      if (taken.contains(name) || is_gone(name, present)) continue;
      parts_.push_back({name, entry.shard, entry.sections.bytes, &entry, {}});
    }
    std::sort(parts_.begin(), parts_.end(),
              [](const Part& a, const Part& b) { return a.name < b.name; });
  }

  std::set<std::string> names_in_data_folder() {
    data_folder_ = data_folder_of(folder_);
    if (data_folder_.empty()) return {};
    try {
      const std::vector<std::string> names = list_folder(data_folder_);
      return {names.begin(), names.end()};
    } catch (const Error&) {
      data_folder_.clear();
      return {};
    }
  }

  // A listing may miss what is being renamed.
  bool is_gone(const std::string& name, const std::set<std::string>& present) const {
    return !data_folder_.empty() && !present.contains(name) && !names_another_folder(name) &&
           look_at_name(data_folder_ + "/" + name).kind == NameKind::nothing;
  }

  void write() {
    const auto file = publish_file(path_);
    file->keep_permissions();
    std::vector<std::uint8_t> directory = directory_of_parts();
    FolderHeader header = {};
    std::memcpy(header.magic, kFolderMagic, sizeof kFolderMagic);
    header.version = kFolderVersion;
    header.directory_crc = crc32c(directory.data(), directory.size());
    header.index_bytes = end_;
    header.shard_count = parts_.size();
    header.directory_bytes = directory.size();
    header.header_crc = crc_of(header);
    file->append(&header, sizeof header);
    file->append(directory.data(), directory.size());
    for (const Part& part : parts_) write_sections(part, *file);
    commit_own_file(*file, true);
  }

  std::vector<std::uint8_t> directory_of_parts() {
    std::uint64_t names_bytes = 0;
    for (const Part& part : parts_) names_bytes += part.name.size();
    const std::size_t entries_bytes = parts_.size() * sizeof(DirectoryEntry);
    std::vector<std::uint8_t> directory(aligned(entries_bytes + names_bytes));
    end_ = sizeof(FolderHeader) + directory.size();
    std::uint64_t name_at = 0;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const Part& part = parts_[i];
      const DirectoryEntry entry{
          part.shard, {end_, part.bytes}, name_at, static_cast<std::uint32_t>(part.name.size()), 0};
      std::memcpy(&directory[i * sizeof entry], &entry, sizeof entry);
      std::memcpy(&directory[entries_bytes + name_at], part.name.data(), part.name.size());
      name_at += part.name.size();
      end_ += aligned(part.bytes);
    }
    return directory;
  }

  void write_sections(const Part& part, Publication& file) {
    std::shared_ptr<const IndexBytes> bytes;
    std::uint64_t at = 0;
    if (part.kept != nullptr) {
      bytes = old_->bytes_of(*part.kept);
    } else {
      const std::string path = loose_index_path(folder_, part.name);
      bytes = std::make_shared<const IndexBytes>(path);
      at = sizeof(IndexHeader);
      if (bytes->size() != at + part.bytes || !is_unchanged(path, part.loose)) {
        throw Error(ErrorKind::io,
                    "'" + path + "' changed while it was collected into '" + path_ +
                        "'. Build the index again: `tfrfast index`.",
                    {path, {}, {}}, EBUSY);
      }
    }
    constexpr std::uint64_t kPieceBytes = 1 << 20;
    for (std::uint64_t done = 0; done < part.bytes; done += kPieceBytes) {
      const auto piece =
          bytes->copy<std::uint8_t>(at + done, std::min(kPieceBytes, part.bytes - done));
      file.append(piece.data(), piece.size());
    }
    constexpr std::uint8_t kZeros[kSectionAlignment] = {};
    file.append(kZeros, static_cast<std::size_t>(aligned(part.bytes) - part.bytes));
  }

  // What is here by now may be newer, if somebody did not wait for the lock.
  void remove_loose() {
    for (const Part& part : parts_) {
      if (part.kept != nullptr) continue;
      const std::string path = loose_index_path(folder_, part.name);
      try {
        if (is_unchanged(path, part.loose)) remove_file(path);
      } catch (const Error&) {
        // It is gone already.
      }
    }
  }

  const std::string folder_;
  const std::string path_;
  std::string data_folder_;  // whose shards are indexed here; empty if that is not known
  std::shared_ptr<const FolderIndex> old_;
  std::vector<Part> parts_;
  std::uint64_t end_ = 0;
};

bool are_many(const std::string& folder, std::size_t loose) {
  FolderHeader header;
  const bool has_index = peek(folder_index_path(folder), &header, sizeof header) &&
                         header.header_crc == crc_of(header);
  return !has_index || loose > header.shard_count / kManyShare;
}

std::size_t count_loose(const std::string& folder) {
  std::size_t count = 0;
  for (const std::string& name : list_folder(folder)) count += is_loose_index(name);
  return count;
}

}  // namespace

std::size_t merge_indexes(const std::string& folder, Merge when) {
  if (!is_local(folder)) return 0;
  const std::size_t loose = count_loose(folder);
  if (loose == 0 || (when == Merge::if_many && !are_many(folder, loose))) return 0;
  const FolderLock lock(folder, kMaxWaitMs);
  return lock.is_held() ? FolderMerge(folder).run() : 0;
}

void collect_loose_indexes(const std::string& folder, Merge when) noexcept {
  try {
    merge_indexes(folder, when);
  } catch (const std::exception&) {
    // The folder is full, or is not ours: they stay loose.
  }
}

}  // namespace tfrfast
