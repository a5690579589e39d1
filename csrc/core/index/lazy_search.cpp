#include "core/index/lazy_search.h"

#include <limits>

#include "core/index/index_places.h"
#include "core/index/index_state.h"
#include "core/storage/cache/cache_folder.h"
#include "core/storage/local/folders.h"
#include "core/storage/remote/listed_objects.h"
#include "core/storage/storage.h"
#include "core/storage/storage_options.h"

namespace tfrfast {
namespace {

IndexOptions with_folders(IndexOptions options) {
  if (options.folders == nullptr) options.folders = std::make_shared<IndexFolders>();
  return options;
}

}  // namespace

LazyFolders::LazyFolders(const IndexOptions& options, IoMode io)
    : options_(with_folders(options)), io_(io) {}

const LazyFolders::Folder* LazyFolders::at(const std::string& prefix) {
  const std::string some_shard = prefix + "_";
  const bool is_shared = !options_.folder.empty();
  const bool is_remote = !is_local(prefix);
  if (!is_shared && (options_.use == IndexUse::memory || !has_sibling_folder(some_shard))) {
    return nullptr;
  }
  // Without the lock, because this may wait for a network.
  auto indexes = options_.folders->at(
      is_shared ? options_.folder : sibling_index_folder(some_shard), options_.storage);
  std::shared_ptr<const void> cached;
  if (is_remote) cached = hold_cached(some_shard, options_.storage);
  const std::lock_guard lock(mutex_);
  if (const auto known = by_prefix_.find(prefix); known != by_prefix_.end()) return known->second;
  const Folder*& folder = by_prefix_[prefix];
  if (indexes->indexes().empty()) return folder;
  const std::uint64_t data = place_for(options_.folder, some_shard).data;
  const std::string absolute = is_remote ? prefix : absolute_path(prefix);
  folder = &folders_.emplace_back(Folder{
      {prefix, absolute, io_, is_remote, options_.storage, std::move(cached)}, indexes, data});
  return folder;
}

std::span<const DirectoryEntry> LazySearch::find(const FolderIndex& index,
                                                 std::string_view name) noexcept {
  const auto entries = index.entries();
  const bool is_next = next_ < entries.size() && index.name_of(entries[next_]) == name &&
                       (next_ + 1 == entries.size() || index.name_of(entries[next_ + 1]) != name);
  const auto found = is_next ? entries.subspan(next_, 1) : index.find(name);
  if (!found.empty()) {
    next_ = static_cast<std::size_t>(found.data() - entries.data()) + found.size();
  }
  return found;
}

// Returns true if opening the shard later reports every error that opening it now would report.
bool LazySearch::may_be_lazy(const DirectoryEntry& entry, const FolderIndex& index,
                             const FileFacts& facts) const noexcept {
  constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
  const ShardEntry& shard = entry.shard;
  const auto& expected = folders_.options().compression;
  const bool is_plain = shard.compression == static_cast<std::uint32_t>(Compression::none);
  return shard.damage.bytes == 0 && may_be_believed(index.file_facts().writers, facts.writers) &&
         is_in_state(facts_of(shard), facts) &&
         (!expected || static_cast<std::uint32_t>(*expected) == shard.compression) &&
         shard.stream_bytes <= kMax && shard.record_count <= shard.stream_bytes / kFrameOverhead &&
         (!is_plain || shard.stream_bytes == shard.file_bytes);
}

std::uint64_t LazySearch::look_at(const std::string& path, LazyShard* lazy) {
  const FileFacts facts = examiner_.examine(path);
  if (lazy != nullptr) look_in_index(path, facts, lazy);
  return facts.bytes;
}

void LazySearch::look_at_listed(const std::string& url, LazyShard* lazy) {
  const std::string& access = folders_.options().storage.access;
  const auto listed = listed_object(url, access);
  if (!listed || !listed->facts.version_lasts) return;
  look_in_index(url, listed->facts, lazy);
  if (lazy->entry == nullptr) return;
  if (auto taken = take_listed_object(url, access); taken && taken->facts == listed->facts) {
    lazy->version = std::move(taken->version);
  } else {
    lazy->entry = nullptr;  // another thread has opened the object, or listed it again
  }
}

void LazySearch::look_in_index(const std::string& path, const FileFacts& facts, LazyShard* lazy) {
  const std::size_t name_at = path.rfind('/') + 1;  // 0 for a bare name
  if (!knows_prefix_ || path.compare(0, name_at, prefix_) != 0) {
    prefix_ = path.substr(0, name_at);
    folder_ = folders_.at(prefix_);
    knows_prefix_ = true;
    next_ = 0;
  }
  if (folder_ == nullptr) return;
  const std::string_view name = std::string_view(path).substr(name_at);
  for (const auto& index : folder_->indexes->indexes()) {
    const auto entries = find(*index, name);
    // A moved shard may be listed under its former data folder.
    for (const bool is_there : {true, false}) {
      for (const DirectoryEntry& entry : entries) {
        if ((entry.data == folder_->data) != is_there || !may_be_lazy(entry, *index, facts)) {
          continue;
        }
        *lazy = {&folder_->lazy, index, &entry, facts, {}};
        return;
      }
    }
  }
}

}  // namespace tfrfast
