#include "core/index/index_keeping.h"

#include <cerrno>
#include <exception>

#include "core/base/error.h"
#include "core/index/index_file.h"
#include "core/index/index_places.h"
#include "core/index/index_state.h"
#include "core/storage/folders.h"
#include "core/storage/place.h"

namespace tfrfast {
namespace {

// Whether the index at `path` is of another shard, or of another state of this one.
bool is_anothers(const std::string& path, const ShardIndex& scanned,
                 const std::shared_ptr<const StoredFile>& file) {
  try {
    const auto index = load_index(path);
    return index != nullptr && !is_proven_by(scanned, *index, file);
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void keep_in_cache(const ShardIndex& index, const std::string& shard_path) noexcept {
  try {
    // Not durable: an index that a power cut has torn is noticed and built again.
    if (!writable_index_cache().empty()) save_index(index, cached_index_path(shard_path), false);
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

void check_index_places(const std::vector<std::string>& places) {
  make_folders(folder_of(places.back()));
  const NameKind last = look_at_name(places.back()).kind;
  const bool is_taken = places.size() > 1 && last != NameKind::nothing && last != NameKind::folder;
  check_place(is_taken ? places.front() : places.back(), "Keeping an index in",
              "Name another folder for indexes.");
}

std::string save_in_shared_folder(const ShardIndex& index, const std::string& folder,
                                  const std::shared_ptr<const StoredFile>& file) {
  const std::string plain = index_path_in(folder, file->path());
  const std::string second = second_index_path_in(folder, file->path());
  if (look_at(second).kind == NameKind::nothing) {
    try {
      save_index(index, plain, true, Existing::keep);
      return plain;
    } catch (const Error& error) {
      if (error.system_error() != EEXIST) throw;
    }
    if (!is_anothers(plain, index, file)) {
      save_index(index, plain, true);
      return plain;
    }
  }
  save_index(index, second, true);
  return second;
}

}  // namespace tfrfast
