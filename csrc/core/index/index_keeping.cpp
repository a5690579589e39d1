#include "core/index/index_keeping.h"

#include <cerrno>
#include <exception>

#include "core/base/error.h"
#include "core/index/folder_merge.h"
#include "core/index/index_file.h"
#include "core/index/index_folders.h"
#include "core/index/index_places.h"
#include "core/index/index_state.h"
#include "core/storage/folder_lock.h"
#include "core/storage/folders.h"
#include "core/storage/own_file.h"
#include "core/storage/place.h"
#include "core/storage/published_file.h"
#include "core/storage/storage.h"

namespace tfrfast {
namespace {

// How long to wait for others who collect loose indexes. After that, one may be saved while an
// older one of its name is removed, and then a scan has to make it again.
constexpr int kLooseWaitMs = 30'000;

// The index of that name: the loose one, else that in the folder's index; null if there is none.
// Throws Error stale_index and io.
std::shared_ptr<const ShardIndex> load_named(const std::string& loose, const FolderIndex* folder,
                                             const std::string& name) {
  if (auto index = load_index(loose); index != nullptr) return index;
  const DirectoryEntry* const entry = folder == nullptr ? nullptr : folder->find(name);
  return entry == nullptr ? nullptr : folder->open(*entry);
}

// Whether the index of that name is of another shard, or of another state of this one.
bool is_anothers(const std::string& loose, const FolderIndex* folder, const std::string& name,
                 const ShardIndex& scanned, const std::shared_ptr<const StoredFile>& file) {
  try {
    const auto index = load_named(loose, folder, name);
    return index != nullptr && !is_proven_by(scanned, *index, file);
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void keep_in_cache(const ShardIndex& index, const std::string& shard_path) noexcept {
  try {
    if (writable_index_cache().empty()) return;
    // Whatever has the name in a folder that is ours alone is replaced.
    const auto file = publish_file(cached_index_path(shard_path));
    write_index(index, *file);
    // Not durable: an index that a power cut has torn is noticed and built again.
    file->commit(false);
  } catch (const std::exception&) {
    // If the cache is full or not writable, the next opening scans again, and that is all.
  }
}

void remember_proof(const ShardIndex& index, const ShardIndex& scanned,
                    const std::string& shard_path) noexcept {
  if (!scanned.facts().settled) return;
  try {
    if (writable_index_cache().empty()) return;
    if (index.origin() == cached_index_path(shard_path)) {
      keep_in_cache(scanned, shard_path);  // replaces our own with one of this state
    } else {
      save_proof(proof_path(shard_path, index.origin()), index, scanned.facts());
    }
  } catch (const std::exception&) {
    // The next opening scans again.
  }
}

void check_index_places(const std::string& folder, const std::vector<std::string>& names,
                        const std::shared_ptr<IndexFolders>& folders) {
  make_own_folder(folder);
  // A file is made and removed. ext4 does not use such a file's inode again for some seconds, and
  // passes over all of those when it makes the next file: with one for each of many shards, that
  // takes longer than all else.
  if (folders != nullptr && !folders->is_first_check(folder)) return;
  const std::string last = loose_index_path(folder, names.back());
  const NameKind found = look_at_name(last).kind;
  const bool is_taken = names.size() > 1 && found != NameKind::nothing && found != NameKind::folder;
  check_place(is_taken ? loose_index_path(folder, names.front()) : last, "Keeping an index in",
              "Name another folder for indexes.");
}

void save_loose(const ShardIndex& index, const std::string& path, Existing existing) {
  const FolderLock lock(folder_of(path), kLooseWaitMs);
  save_index(index, path, false, existing);
}

void commit_loose(Publication& index) {
  const FolderLock lock(folder_of(index.path()), kLooseWaitMs);
  commit_own_file(index, false);
}

void move_loose(const std::string& from, const std::string& to) {
  const FolderLock lock(folder_of(to), kLooseWaitMs);
  check_own_name(to);
  try {
    move_file(from, to, Existing::replace);
  } catch (const Error& error) {
    if (error.system_error() != EXDEV) throw;
    if (const auto index = load_index(from)) save_index(*index, to, true);
    remove_file(from);
  }
}

std::string save_in_shared_folder(const ShardIndex& index, const std::string& folder,
                                  const std::shared_ptr<const StoredFile>& file,
                                  const std::shared_ptr<IndexFolders>& folders) {
  const std::vector<std::string> names = names_in_shared_folder(file->path());
  const std::string plain = loose_index_path(folder, names.back());
  const std::string second = loose_index_path(folder, names.front());
  // While the lock is held, names do not move from loose indexes into the folder's. Nothing here
  // looks at all names of the folder: it would do so again for each shard.
  const FolderLock lock(folder, kLooseWaitMs);
  IndexFolders own;
  const auto collected = (folders == nullptr ? own : *folders).index_now(folder);
  const auto has_section = [&](const std::string& name) {
    return collected != nullptr && collected->find(name) != nullptr;
  };
  // Beside a data folder, the plain names are those of its own shards.
  const bool may_be_plain = !file->traits().is_far || data_folder_of(folder).empty();
  if (may_be_plain && look_at_name(second).kind == NameKind::nothing &&
      !has_section(names.front())) {
    if (!has_section(names.back())) {
      try {
        save_index(index, plain, false, Existing::keep);
        return plain;
      } catch (const Error& error) {
        if (error.system_error() != EEXIST) throw;
      }
    }
    if (!is_anothers(plain, collected.get(), names.back(), index, file)) {
      save_index(index, plain, false);
      return plain;
    }
  }
  save_index(index, second, false);
  return second;
}

}  // namespace tfrfast
