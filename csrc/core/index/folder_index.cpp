#include "core/index/folder_index.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <tuple>
#include <utility>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/index/index_sections.h"
#include "core/storage/local/sidecar.h"

namespace tfrfast {
namespace {

// Opens the same file without a mapping, if the file still exists. Pages of a mapping, once read,
// would count as memory of this process.
std::shared_ptr<const StoredFile> unmapped(const std::shared_ptr<const StoredFile>& file) {
  if (file->mapping() == nullptr) return file;
  try {
    auto again = StoredFile::open(file->path(), IoMode::pread, file->options());
    if (file->is_still(again->facts())) return again;
  } catch (const Error&) {
    // The file was replaced.
  }
  return file;
}

std::shared_ptr<const StoredFile> open_if_there(const std::string& path,
                                                const StorageOptions& options) {
  try {
    return open_sidecar(path, options);
  } catch (const Error& error) {
    if (error.system_error() == ENOENT || error.system_error() == ENOTDIR) return nullptr;
    throw;
  }
}

}  // namespace

void check_folder_header(const std::string& path, const FolderHeader& header) {
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
  const bool adds_up = header.part_count == 0
                           ? header.end == sizeof header
                           : header.last_part >= sizeof header && header.last_part < header.end;
  if (!adds_up) refuse_index(path, "its header contradicts itself.");
}

// Reads the header and the parts. From a local file, reads piece by piece. From other storages,
// reads the first few bytes, then all parts at once unless there is only one.
class FolderIndex::Parts {
 public:
  explicit Parts(const std::shared_ptr<const StoredFile>& file) : file_(unmapped(file)) {
    if (file_->bytes() < sizeof header_) {
      refuse_index(file->path(), "it is shorter than an index's header.");
    }
    is_remote_ = file_->traits().is_remote;
    beginning_.resize(std::min<std::size_t>(sizeof header_ + sizeof(PartHeader),
                                            static_cast<std::size_t>(file_->bytes())));
    do {
      const FolderHeader before = header_;
      file_->read(0, beginning_.data(), beginning_.size());
      std::memcpy(&header_, beginning_.data(), sizeof header_);
      // Another process may be changing the header at this moment. Read again until the header is
      // stable.
      if (std::memcmp(&before, &header_, sizeof header_) == 0) break;
    } while (header_.header_crc != crc_of(header_));
    check_folder_header(file->path(), header_);
    if (!is_remote_ || header_.part_count <= 1) return;
    beginning_.resize(static_cast<std::size_t>(std::min(file_->bytes(), checked(header_.end))));
    file_->read(0, beginning_.data(), beginning_.size());
  }

  const FolderHeader& header() const noexcept { return header_; }
  std::uint64_t end() const noexcept { return std::min(header_.end, file_->bytes()); }

  void read(std::uint64_t at, void* out, std::uint64_t count) const {
    if (count == 0) return;
    auto* const to = static_cast<std::uint8_t*>(out);
    if (at <= beginning_.size() && count <= beginning_.size() - at) {
      std::memcpy(to, beginning_.data() + at, static_cast<std::size_t>(count));
    } else {
      file_->read(at, to, static_cast<std::size_t>(count));
    }
  }

  // False if there is no whole part at `at`.
  bool find(std::uint64_t at, PartHeader* part) const {
    if (at < sizeof header_ || at % kSectionAlignment != 0 || at > end() ||
        end() - at < sizeof *part) {
      return false;
    }
    read(at, part, sizeof *part);
    return part->header_crc == crc_of(*part) && part->previous < at &&
           part->bytes >= sizeof *part && part->bytes <= end() - at &&
           part->directory_bytes <= part->bytes - sizeof *part &&
           part->directory_bytes % kSectionAlignment == 0 &&
           part->shard_count <= part->directory_bytes / sizeof(DirectoryEntry) &&
           part->directory_bytes <=
               std::numeric_limits<std::uint32_t>::max() * std::uint64_t{sizeof(DirectoryEntry)};
  }

  std::uint64_t checked(std::uint64_t bytes) const {
    if (bytes > max_memory_bytes()) {
      refuse_index(file_->path(), "it claims to hold more than memory can hold.");
    }
    return bytes;
  }

 private:
  const std::shared_ptr<const StoredFile> file_;
  bool is_remote_ = false;
  std::vector<std::uint8_t> beginning_;
  FolderHeader header_ = {};
};

std::shared_ptr<const FolderIndex> FolderIndex::load(const std::string& path,
                                                     const StorageOptions& options) {
  bool is_mended = false;
  std::uint64_t bytes_before = 0;
  for (;;) {
    const auto file = open_if_there(path, options);
    if (file == nullptr) return nullptr;
    try {
      const Parts parts(file);
      // A process has added to the file since the opening. Open the file again.
      if (parts.header().end > file->bytes() && file->bytes() > bytes_before) {
        bytes_before = file->bytes();
        continue;
      }
      // Not std::make_shared: the constructor is private.
      const std::shared_ptr<FolderIndex> index(new FolderIndex(file));
      index->read(parts);
      return index;
    } catch (const Error& error) {
      // The local copy of an index may be damaged while the index is intact.
      const bool may_be_mended = error.kind() == ErrorKind::stale_index && !is_mended;
      if (!may_be_mended || !file->mend({0, file->bytes()})) throw;
      is_mended = true;
    }
  }
}

void FolderIndex::read(const Parts& parts) {
  constexpr std::uint64_t kFirst = sizeof(FolderHeader);
  part_count_ = parts.header().part_count;
  // From the last part to the first: the later of two entries counts.
  for (std::uint64_t at = parts.header().last_part; part_count_ > 0;) {
    PartHeader part;
    if (parts.find(at, &part) && take(parts, at, part)) {
      if (at == kFirst) break;
      at = part.previous;
      continue;
    }
    if (at == kFirst && entries_.empty()) {
      refuse_index(path(), "it was cut short, or its directory is damaged.");
    }
    left_out_ = "Index '" + path() + "' is damaged at byte " + std::to_string(at) +
                ", so that some shards are missing in it. Build it again: `tfrfast index`.";
    if (at == kFirst) break;
    at = kFirst;  // the first part usually reached the disk before any other part was added
  }
  const auto key = [this](const DirectoryEntry& each) {
    return std::make_tuple(name_of(each), each.data);
  };
  const auto comes_before = [&](const DirectoryEntry& a, const DirectoryEntry& b) {
    return key(a) < key(b);
  };
  if (!std::is_sorted(entries_.begin(), entries_.end(), comes_before)) {
    std::stable_sort(entries_.begin(), entries_.end(), comes_before);
  }
  const auto is_same = [&](const DirectoryEntry& a, const DirectoryEntry& b) {
    return key(a) == key(b);
  };
  entries_.erase(std::unique(entries_.begin(), entries_.end(), is_same), entries_.end());
}

// Adds a part's directory. Returns false, and adds nothing, if the part is damaged.
bool FolderIndex::take(const Parts& parts, std::uint64_t at, const PartHeader& part) {
  std::vector<std::uint8_t> directory(
      static_cast<std::size_t>(parts.checked(part.directory_bytes)));
  parts.read(at + sizeof part, directory.data(), directory.size());
  if (crc32c(directory.data(), directory.size()) != part.directory_crc) return false;
  const auto count = static_cast<std::size_t>(part.shard_count);
  if (count == 0) return true;
  const std::size_t names_bytes = directory.size() - count * sizeof(DirectoryEntry);
  if (names_bytes > std::numeric_limits<std::uint32_t>::max() - names_.size()) return false;
  const std::uint64_t sections_at = sizeof part + part.directory_bytes;
  const std::size_t known = entries_.size();
  entries_.resize(known + count);
  std::memcpy(entries_.data() + known, directory.data(), count * sizeof(DirectoryEntry));
  for (std::size_t i = known; i < entries_.size(); ++i) {
    DirectoryEntry& each = entries_[i];
    const bool lies_inside =
        each.name_bytes > 0 && each.name_at <= names_bytes &&
        each.name_bytes <= names_bytes - each.name_at && each.sections.at >= sections_at &&
        each.sections.at % kSectionAlignment == 0 && each.sections.at <= part.bytes &&
        each.sections.bytes <= part.bytes - each.sections.at;
    if (!lies_inside) {
      entries_.resize(known);
      return false;
    }
    each.name_at += static_cast<std::uint32_t>(names_.size());
    each.sections.at += at;
  }
  names_.append(reinterpret_cast<const char*>(directory.data() + directory.size() - names_bytes),
                names_bytes);
  return true;
}

std::span<const DirectoryEntry> FolderIndex::find(std::string_view name) const noexcept {
  const auto first =
      std::partition_point(entries_.begin(), entries_.end(),
                           [&](const DirectoryEntry& each) { return name_of(each) < name; });
  auto last = first;
  while (last != entries_.end() && name_of(*last) == name) ++last;
  return {first, last};
}

const DirectoryEntry* FolderIndex::find(std::string_view name, std::uint64_t data) const noexcept {
  for (const DirectoryEntry& each : find(name)) {
    if (each.data == data) return &each;
  }
  return nullptr;
}

std::shared_ptr<const IndexBytes> FolderIndex::bytes_of(const DirectoryEntry& entry) const {
  return std::make_shared<const IndexBytes>(file_, entry.sections.at, entry.sections.bytes);
}

std::shared_ptr<const ShardIndex> FolderIndex::open(const DirectoryEntry& entry) const {
  try {
    return load_sections(bytes_of(entry), entry.shard);
  } catch (const Error& error) {
    const FileRange sections{entry.sections.at, entry.sections.bytes};
    if (error.kind() != ErrorKind::stale_index || !file_->mend(sections)) throw;
  }
  return load_sections(bytes_of(entry), entry.shard);
}

bool is_newer_folder_index(const std::string& path) noexcept {
  FolderHeader header;
  return peek(path, &header, sizeof header) &&
         std::memcmp(header.magic, kFolderMagic, sizeof kFolderMagic) == 0 &&
         header.version > kFolderVersion && header.header_crc == crc_of(header);
}

}  // namespace tfrfast
