#include "core/index/folder_writing.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/base/error.h"
#include "core/index/index_sections.h"
#include "core/index/index_state.h"
#include "core/storage/local/folders.h"
#include "core/storage/local/sidecar.h"
#include "core/storage/local/write_checks.h"
#include "core/storage/storage.h"

namespace tfrfast {
namespace {

constexpr int kMaxWaitMs = 30'000;
// Reading this many parts one by one takes no time. With more parts, the index is rewritten when
// added parts have doubled it, so that writing many shards one by one rewrites each section only a
// few times.
constexpr std::uint64_t kFewParts = 64;
// The same limit in bytes, for a shard that grows and is indexed again and again.
constexpr std::uint64_t kFewBytes = 16 << 20;

// An entry to write, and the source of its sections.
struct EntrySource {
  std::string_view name;
  DirectoryEntry entry;
  const FolderIndex* index = nullptr;      // the index that holds the sections
  const std::uint8_t* sections = nullptr;  // otherwise the sections themselves
};

// Throws Error io if a file that must stay has the name.
void refuse_others(const std::string& path) {
  check_sidecar_name(path);
  if (is_newer_folder_index(path)) {
    throw_system_error(EEXIST, "Adding to", path,
                       "A later version of tfrfast made it. Use that version, or name another "
                       "folder for indexes.");
  }
}

// Loads the index at `path`, which may be replaced or extended. Null if the file does not exist or
// holds nothing usable. Throws Error io.
std::shared_ptr<const FolderIndex> load_own(const std::string& path) {
  refuse_others(path);
  try {
    return FolderIndex::load(path);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::stale_index) throw;
    return nullptr;
  }
}

void add_entries(const FolderIndex& index, std::vector<EntrySource>& sources) {
  for (const DirectoryEntry& each : index.entries()) {
    sources.push_back({index.name_of(each), each, &index, nullptr});
  }
}

// Keeps the first of the sources that describe the same shard.
void sort_sources(std::vector<EntrySource>& sources) {
  const auto key = [](const EntrySource& each) {
    return std::make_tuple(each.name, each.entry.data);
  };
  std::stable_sort(sources.begin(), sources.end(),
                   [&](const EntrySource& a, const EntrySource& b) { return key(a) < key(b); });
  sources.erase(
      std::unique(sources.begin(), sources.end(),
                  [&](const EntrySource& a, const EntrySource& b) { return key(a) == key(b); }),
      sources.end());
}

// Makes the part's header, and its directory in the order of the sources.
std::vector<std::uint8_t> beginning_of(const std::vector<EntrySource>& sources,
                                       std::uint64_t previous) {
  std::size_t names_bytes = 0;
  for (const EntrySource& each : sources) names_bytes += each.name.size();
  const std::size_t entries_bytes = sources.size() * sizeof(DirectoryEntry);
  PartHeader header = {};
  header.previous = previous;
  header.shard_count = sources.size();
  header.directory_bytes = aligned(entries_bytes + names_bytes);
  std::vector<std::uint8_t> beginning(sizeof header +
                                      static_cast<std::size_t>(header.directory_bytes));
  std::uint8_t* const directory = beginning.data() + sizeof header;
  header.bytes = beginning.size();
  std::uint32_t name_at = 0;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    DirectoryEntry entry = sources[i].entry;
    entry.sections.at = header.bytes;
    entry.name_at = name_at;
    entry.name_bytes = static_cast<std::uint32_t>(sources[i].name.size());
    std::memcpy(directory + i * sizeof entry, &entry, sizeof entry);
    std::memcpy(directory + entries_bytes + name_at, sources[i].name.data(), entry.name_bytes);
    name_at += entry.name_bytes;
    header.bytes += aligned(entry.sections.bytes);
  }
  header.directory_crc = crc32c(directory, static_cast<std::size_t>(header.directory_bytes));
  header.header_crc = crc_of(header);
  std::memcpy(beginning.data(), &header, sizeof header);
  return beginning;
}

FolderHeader header_of_one_part(const std::vector<std::uint8_t>& beginning) {
  PartHeader part;
  std::memcpy(&part, beginning.data(), sizeof part);
  FolderHeader header = {};
  std::memcpy(header.magic, kFolderMagic, sizeof kFolderMagic);
  header.version = kFolderVersion;
  header.end = sizeof header;
  if (part.shard_count > 0) {
    header.end += part.bytes;
    header.last_part = sizeof header;
    header.part_count = 1;
    header.first_shards = part.shard_count;
  }
  header.header_crc = crc_of(header);
  return header;
}

void append_sections(const EntrySource& source, PublishedFile& file) {
  const std::uint64_t bytes = source.entry.sections.bytes;
  if (source.index == nullptr) {
    file.append(source.sections, static_cast<std::size_t>(bytes));
  } else {
    constexpr std::uint64_t kPieceBytes = 1 << 20;
    const auto sections = source.index->bytes_of(source.entry);
    for (std::uint64_t done = 0; done < bytes; done += kPieceBytes) {
      const auto piece = sections->copy<std::uint8_t>(done, std::min(kPieceBytes, bytes - done));
      file.append(piece.data(), piece.size());
    }
  }
  constexpr std::uint8_t kZeros[kSectionAlignment] = {};
  file.append(kZeros, static_cast<std::size_t>(aligned(bytes) - bytes));
}

// Replaces any file at `path`.
void write_anew(const std::string& path, std::vector<EntrySource> sources, bool durable) {
  sort_sources(sources);
  PublishedFile file(path);
  file.keep_permissions();
  const std::vector<std::uint8_t> beginning = beginning_of(sources, 0);
  const FolderHeader header = header_of_one_part(beginning);
  file.append(&header, sizeof header);
  if (header.part_count > 0) file.append(beginning.data(), beginning.size());
  for (const EntrySource& each : sources) append_sections(each, file);
  commit_sidecar(file, durable);
}

// The names in a data folder. Tells which entries of the folder's shards are obsolete.
class DataFolder {
 public:
  // The data folder beside which the index lies.
  explicit DataFolder(const std::string& index_folder)
      : DataFolder(data_folder_of(index_folder), 0) {}
  // The data folder that entries call `data`. With an empty `path`, nothing is known about the
  // folder.
  DataFolder(std::string path, std::uint64_t data) : path_(std::move(path)), data_(data) {
    if (path_.empty()) return;
    try {
      const std::vector<std::string> names = list_folder(path_);
      names_ = {names.begin(), names.end()};
    } catch (const Error&) {
      path_.clear();
    }
  }

  bool has_lost(const EntrySource& source) const {
    if (path_.empty() || source.entry.data != data_) return false;
    const std::string name(source.name);
    // A listing may miss a file that is being renamed.
    return !names_.contains(name) && look_at_name(path_ + "/" + name).kind == NameKind::nothing;
  }

 private:
  std::string path_;
  const std::uint64_t data_;
  std::set<std::string> names_;
};

std::string path_in_new_folder(const std::string& folder) {
  make_sidecar_folder(folder);
  return own_index_path(folder);
}

void compact(const std::string& path, const DataFolder* data, bool durable) {
  const auto index = load_own(path);
  if (index == nullptr) return;
  std::vector<EntrySource> sources;
  add_entries(*index, sources);
  if (data != nullptr) {
    std::erase_if(sources, [&](const EntrySource& each) { return data->has_lost(each); });
  }
  write_anew(path, std::move(sources), durable);
}

}  // namespace

IndexAddition::IndexAddition(const IndexPlace& place, const ShardIndex& index)
    : place_(place), path_(path_in_new_folder(place.folder)), lock_(place.folder, kMaxWaitMs) {
  const IndexSections made = sections_of(index);
  EntrySource source{place.name, {}, nullptr, nullptr};
  source.entry.shard = made.shard;
  source.entry.sections.bytes = made.bytes.size();
  source.entry.data = place.data;
  part_ = beginning_of({source}, 0);
  beginning_bytes_ = part_.size();
  part_.insert(part_.end(), made.bytes.begin(), made.bytes.end());
  part_.resize(aligned(part_.size()));
  // Without the lock, two processes might write to the same place.
  if (!lock_.is_held()) return;
  if (!begin_in_place()) {
    // Rewrite the entries that can be saved, or an empty index.
    const auto damaged = load_own(path_);
    std::vector<EntrySource> sources;
    if (damaged != nullptr) add_entries(*damaged, sources);
    write_anew(path_, std::move(sources), damaged != nullptr && place_.cached_for.empty());
    if (!begin_in_place()) return;
  }
  file_->cut(header_.end);
  file_->write(header_.end, part_.data(), part_.size());
}

// Opens the file and reads its header. False if the file cannot be extended.
bool IndexAddition::begin_in_place() {
  if (look_at_name(path_).kind == NameKind::nothing) return false;
  refuse_others(path_);
  file_.emplace(path_);
  try {
    if (file_->read(0, &header_, sizeof header_)) {
      check_folder_header(path_, header_);
      if (header_.end <= file_->bytes()) return true;
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::stale_index) throw;
  }
  file_.reset();
  return false;
}

DirectoryEntry& IndexAddition::entry() noexcept {
  return *reinterpret_cast<DirectoryEntry*>(part_.data() + sizeof(PartHeader));
}

void IndexAddition::commit(const ShardFacts& facts, bool durable) {
  set_state(entry().shard, facts);
  PartHeader part;
  std::memcpy(&part, part_.data(), sizeof part);
  if (!file_) {
    const auto index = load_own(path_);
    const char* const name =
        reinterpret_cast<const char*>(part_.data() + sizeof part + sizeof(DirectoryEntry));
    std::vector<EntrySource> sources{
        {{name, entry().name_bytes}, entry(), nullptr, part_.data() + beginning_bytes_}};
    if (index != nullptr) add_entries(*index, sources);
    write_anew(path_, std::move(sources), durable);
    return;
  }
  part.previous = header_.part_count == 0 ? 0 : header_.last_part;
  part.directory_crc =
      crc32c(part_.data() + sizeof part, static_cast<std::size_t>(part.directory_bytes));
  part.header_crc = crc_of(part);
  std::memcpy(part_.data(), &part, sizeof part);
  file_->write(header_.end, part_.data(), beginning_bytes_);
  header_.last_part = header_.end;
  header_.end += part_.size();
  header_.part_count += 1;
  if (header_.part_count == 1) header_.first_shards = 1;
  header_.header_crc = crc_of(header_);
  file_->write(0, &header_, sizeof header_);
  if (durable) file_->flush();
  PartHeader first = {};
  file_->read(sizeof header_, &first, sizeof first);
  // Close before unlocking: on a network filesystem, other machines see closed files.
  file_.reset();
  const std::uint64_t first_bytes = std::min(first.bytes, header_.end);
  const bool has_doubled = header_.part_count > kFewParts + header_.first_shards ||
                           header_.end - first_bytes > kFewBytes + first_bytes;
  if (!has_doubled) return;
  if (place_.cached_for.empty()) {
    compact(path_, nullptr, true);
  } else {
    const DataFolder data(is_local(place_.cached_for) ? place_.cached_for : "", place_.data);
    compact(path_, &data, false);
  }
}

std::string keep_index(const IndexPlace& place, const ShardIndex& index) {
  IndexAddition addition(place, index);
  addition.commit(index.facts(), false);
  return addition.path();
}

void add_moved_index(const FolderIndex& made, const std::string& name, const IndexPlace& place,
                     const std::string& shard_path) {
  const auto found = made.find(name);
  if (found.empty()) refuse_index(made.path(), "it has no shard '" + name + "'.");
  const auto index = made.open(found.front());
  IndexAddition(place, *index).commit(facts_when_published(index->facts(), shard_path), false);
}

void compact_index(const std::string& folder) {
  const std::string path = own_index_path(folder);
  FolderHeader header;
  if (!peek(path, &header, sizeof header) || header.part_count <= 1) return;
  const FolderLock lock(folder, kMaxWaitMs);
  if (!lock.is_held()) return;
  const DataFolder data(folder);
  compact(path, &data, true);
}

void try_to_compact_index(const std::string& folder) noexcept {
  try {
    compact_index(folder);
  } catch (const std::exception&) {
    // The disk is full, or the folder belongs to another user. An index in parts works as well.
  }
}

void join_index(const std::string& folder, const std::string& from) {
  make_sidecar_folder(folder);
  const std::string path = own_index_path(folder);
  const FolderLock lock(folder, kMaxWaitMs);
  const auto added = FolderIndex::load(from);
  const auto index = load_own(path);
  std::vector<EntrySource> sources;
  if (added != nullptr) add_entries(*added, sources);
  if (index != nullptr) add_entries(*index, sources);
  write_anew(path, std::move(sources), true);
}

void check_index_folder(const std::string& folder, const std::string& advice, bool is_tried) {
  const std::string action = "Keeping an index in";
  try {
    make_sidecar_folder(folder);
  } catch (const Error& error) {
    throw Error(ErrorKind::io, error.message() + " " + advice, error.place(), error.system_error());
  }
  const std::string path = own_index_path(folder);
  if (is_tried) {
    check_name(path, action, advice);
  } else {
    check_place(path, action, advice);
  }
  refuse_others(path);
}

}  // namespace tfrfast
