#include "core/index/opening.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/warnings.h"
#include "core/codec/inflated_file.h"
#include "core/index/folder_writing.h"
#include "core/index/frame_samples.h"
#include "core/index/index_places.h"
#include "core/index/index_state.h"
#include "core/storage/local/folders.h"
#include "core/storage/local/sidecar.h"
#include "core/storage/storage.h"

namespace tfrfast {
namespace {

// Mends the local copies of damaged bytes. Returns whether anything was mended, so that another
// walk may find no damage.
bool mend_damage(const StoredFile& file, Compression compression,
                 const std::vector<Damage>& damage) {
  bool is_mended = false;
  for (const Damage& each : damage) {
    // Damage of a compressed shard has a place in the inflated stream, so mend the whole file.
    const bool is_plain = compression == Compression::none;
    is_mended |= is_plain ? file.mend({each.begin, each.end - each.begin})
                          : file.mend({0, file.facts().bytes});
    if (!is_plain) break;
  }
  return is_mended;
}

// Walks a shard into an index. `kept` says whether the index will be kept. Sets `is_whole` to
// false if damage ended the walk.
IndexedShard walk_into_index(const std::shared_ptr<const StoredFile>& file,
                             const WalkOptions& options, bool kept, const WalkProgress& progress,
                             bool* is_whole) {
  const bool settled = kept && file->await_settled();
  auto walk = std::make_unique<FrameWalk>(file, options, progress);
  WalkedFrames found = walk->take_all();
  if (mend_damage(*file, options.compression, found.damage)) {
    walk = std::make_unique<FrameWalk>(file, options, progress);
    found = walk->take_all();
  }
  *is_whole = found.is_whole;
  auto index = index_of(*file, options.compression, std::move(found), settled);
  return {walk->file(), index, true, {}};
}

// The possible places of a shard's index.
struct IndexPlaces {
  std::optional<IndexPlace> in_folder;
  std::optional<IndexPlace> cached;  // in the user's cache
  // The user named the folder. Then the cache counts only for a shard of which the folder has an
  // index of another state.
  bool folder_is_named = false;

  std::string in_words() const {
    std::string words;
    for (const auto& place : {in_folder, folder_is_named ? std::nullopt : cached}) {
      if (place) words += (words.empty() ? "'" : ", '") + folder_index_path(place->folder) + "'";
    }
    return words;
  }
};

IndexPlaces places_for(const std::string& shard_path, const IndexOptions& options) {
  const bool is_named = !options.folder.empty();
  if (options.use == IndexUse::memory && !is_named) return {};
  IndexPlaces places;
  places.folder_is_named = is_named;
  if (is_named || has_sibling_folder(shard_path)) {
    places.in_folder = place_for(options.folder, shard_path);
  }
  if (options.use != IndexUse::beside && index_cache_is_ours()) {
    places.cached = cached_place(shard_path);
  }
  return places;
}

// The result of a search.
struct FoundIndex {
  std::shared_ptr<const ShardIndex> fitting;  // the first index that fits
  // Without a fitting index: indexes of shards of this size, which a walk may confirm.
  std::vector<std::shared_ptr<const ShardIndex>> unconfirmed;
  std::string why_not;  // why the last examined index does not fit
};

// Searches for an index that fits a shard, with `compression`, or with any compression if empty.
// Skips an index that may not be believed (sidecar.h), with a warning.
class Search {
 public:
  Search(const StoredFile& file, std::optional<Compression> compression)
      : file_(file), compression_(compression) {}

  // Throws only std::bad_alloc: `why_not` says why an index cannot be used.
  FoundIndex run(const IndexPlaces& places, IndexFolders& folders) && {
    // A look into the cache costs nothing, a look at a remote storage a round trip.
    const bool cache_first = file_.traits().is_remote && !places.folder_is_named;
    if (cache_first) look_in(places.cached, folders);
    look_in(places.in_folder, folders);
    const bool cache_counts = !places.folder_is_named || !found_.unconfirmed.empty();
    if (!cache_first && cache_counts) look_in(places.cached, folders);
    return std::move(found_);
  }

 private:
  void look_in(const std::optional<IndexPlace>& place, IndexFolders& folders) {
    if (found_.fitting != nullptr || !place) return;
    const auto folder = folders.at(place->folder, file_.options());
    if (!folder->why_not().empty()) found_.why_not = folder->why_not();
    for (const auto& index : folder->indexes()) look_at(*index, *place);
  }

  bool is_believed(const std::string& path, const Writers& writers) {
    const Writers& data = file_.facts().writers;
    if (may_be_believed(writers, data)) return true;
    found_.why_not =
        "Index '" + path + "' is ignored: " + why_not_believed(writers, file_.path(), data) + ".";
    // Warn once per folder, because the folder probably holds more such indexes.
    warn_once("owner " + std::to_string(writers.owner) + " " + folder_of(path),
              found_.why_not + " Remove it, or keep your own elsewhere: index_folder=.");
    return false;
  }

  // A moved shard may be listed under its former data folder.
  void look_at(const FolderIndex& index, const IndexPlace& place) {
    for (const bool is_there : {true, false}) {
      for (const DirectoryEntry& entry : index.find(place.name)) {
        if (found_.fitting != nullptr || (entry.data == place.data) != is_there) continue;
        try {
          if (is_believed(index.path(), index.file_facts().writers)) {
            judge(index.open(entry), !place.cached_for.empty());
          }
        } catch (const Error& error) {
          found_.why_not = error.message();
        }
      }
    }
  }

  void judge(std::shared_ptr<const ShardIndex> index, bool is_cached) {
    const ShardFacts& facts = index->facts();
    const bool may_fit = facts.compression == compression_.value_or(facts.compression) &&
                         facts.file_bytes == file_.facts().bytes;
    // The indexes in the user's cache were made by this user.
    if (may_fit && index_fits(*index, file_) && (is_cached || has_claimed_damage(*index, file_))) {
      found_.fitting = std::move(index);
      return;
    }
    found_.why_not = "Index '" + index->origin() + "' was made for another state of '" +
                     file_.path() + "' (" + std::to_string(facts.file_bytes) + " bytes then, " +
                     std::to_string(file_.facts().bytes) + " now, or other records).";
    if (may_fit) found_.unconfirmed.push_back(std::move(index));
  }

  const StoredFile& file_;
  const std::optional<Compression> compression_;
  FoundIndex found_;
};

FoundIndex look_in(const IndexPlaces& places, const IndexOptions& options, const StoredFile& file,
                   std::optional<Compression> compression) {
  IndexFolders own;
  return Search(file, compression).run(places, options.folders == nullptr ? own : *options.folders);
}

// Whether a found index of another state has the records that `walked` has.
bool is_confirmed(const FoundIndex& found, const ShardIndex& walked) {
  return std::any_of(found.unconfirmed.begin(), found.unconfirmed.end(), [&](const auto& index) {
    try {
      return index->facts().compression == walked.facts().compression &&
             index->has_same_entries(walked);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::stale_index) throw;
      return false;
    }
  });
}

// Checks that an index can be kept there, now rather than after a long walk. For many shards, each
// folder is checked once.
void check_place_for(const IndexPlace& place, const IndexOptions& options) {
  // The check makes and removes a file. ext4 does not reuse the file's inode for some seconds, and
  // skips all such inodes when it makes the next file. With a check for each of many shards,
  // skipping would take most of the time.
  const bool is_tried =
      options.folders != nullptr && !options.folders->is_first_check(place.folder);
  if (!is_tried) check_index_folder(place.folder, "Name another folder for indexes.");
}

// Keeps the index in the user's cache, if the cache may be used. Throws Error io.
void put_in_cache(const ShardIndex& index, const std::string& shard_path) {
  const auto place = cached_place(shard_path);
  if (!place || !make_cached_folder(*place)) return;
  const std::string path = own_index_path(place->folder);
  // In a folder that belongs to this user alone, any other file with the name is removed. If no
  // file has the name, another thread may be about to put an index there.
  const bool is_taken = look_at_name(path).kind != NameKind::nothing;
  if (is_taken && !begins_like_sidecar(path)) remove_file(path);
  // Not durable: an index torn by a power cut is noticed and built again.
  keep_index(*place, index);
}

}  // namespace

void keep_in_cache(const ShardIndex& index, const std::string& shard_path) noexcept {
  try {
    put_in_cache(index, shard_path);
  } catch (const std::exception&) {
    // The cache is full or not writable. The next opening walks again.
  }
}

std::optional<Compression> resolve_compression(const StoredFile& file,
                                               std::optional<Compression> expected) {
  const Compression found = detect_compression(file);
  const Compression compression = expected.value_or(found);
  // An empty file is an empty shard, whatever compression is expected.
  if (found == Compression::none && file.bytes() == 0) return Compression::none;
  if (compression != Compression::none && compression != found) return {};
  return found == Compression::none ? Compression::none : compression;
}

IndexedShard unreadable_shard(std::shared_ptr<const StoredFile> file, Compression expected) {
  const std::uint64_t bytes = file->bytes();
  auto index = std::make_shared<const ShardIndex>(
      facts_of(file->facts(), bytes, expected, false), std::vector<std::uint64_t>{0},
      std::vector<Damage>{{DamageKind::bad_stream, 0, bytes, 0, 0}});
  return {std::move(file), std::move(index), false, {}};
}

std::shared_ptr<const ShardIndex> find_index(const StoredFile& file, Compression compression,
                                             const IndexOptions& options) {
  return look_in(places_for(file.path(), options), options, file, compression).fitting;
}

std::shared_ptr<const StoredFile> as_indexed(std::shared_ptr<const StoredFile> file,
                                             const ShardIndex& index,
                                             const StorageOptions& options) {
  if (index.seek_points() == nullptr) return file;
  return std::make_shared<const InflatedFile>(std::move(file), index.facts().compression,
                                              index.seek_points(), options);
}

std::shared_ptr<const ShardIndex> index_of(const StoredFile& file, Compression compression,
                                           WalkedFrames walk, bool settled) {
  const std::uint64_t stream_bytes =
      walk.seek_points == nullptr ? file.bytes() : walk.seek_points->stream_bytes();
  ShardFacts facts = facts_of(file.facts(), stream_bytes, compression, settled);
  if (compression == Compression::none && !file.traits().is_remote) {
    const PackedOffsets offsets = walk.offsets.view();
    facts.samples_crc = crc_of_samples(file, offsets.size() - 1,
                                       [&](std::uint64_t number) { return offsets[number]; });
  }
  return std::make_shared<const ShardIndex>(facts, std::move(walk.offsets), std::move(walk.damage),
                                            std::move(walk.seek_points));
}

IndexedShard open_indexed(const std::string& shard_path, IoMode io, const IndexOptions& options,
                          const WalkProgress& progress) {
  return open_indexed(StoredFile::open(shard_path, io, options.storage), options, progress);
}

IndexedShard open_indexed(const std::shared_ptr<const StoredFile>& file,
                          const IndexOptions& options, const WalkProgress& progress) {
  const std::string& shard_path = file->path();
  const IndexPlaces places = places_for(shard_path, options);
  FoundIndex found;
  const auto as_found = [&] {
    if (progress) progress(file->bytes());
    return IndexedShard{as_indexed(file, *found.fitting, options.storage), found.fitting, false,
                        found.fitting->origin()};
  };
  const bool knows_by_version =
      file->traits().is_remote && file->facts().version_lasts && !options.compression;
  if (knows_by_version) {
    // An index of this very version makes a look at the first bytes unnecessary. An index with
    // damage does not: its maker may have expected another compression.
    found = look_in(places, options, *file, {});
    if (found.fitting != nullptr && found.fitting->damage().empty()) return as_found();
  }
  const std::optional<Compression> resolved = resolve_compression(*file, options.compression);
  if (!resolved) return unreadable_shard(file, *options.compression);
  const Compression compression = *resolved;
  const bool found_nothing = found.fitting == nullptr && found.unconfirmed.empty();
  if (!knows_by_version || !found_nothing) found = look_in(places, options, *file, compression);
  if (found.fitting != nullptr) return as_found();
  const auto throw_without_index = [&] {
    throw Error(ErrorKind::stale_index,
                (found.why_not.empty()
                     ? "'" + shard_path + "' has no index (looked at " + places.in_words() + ")."
                     : found.why_not) +
                    " Build it: `tfrfast index " + shard_path + "`, or open with index=\"auto\".",
                {shard_path, {}, {}});
  };
  const bool may_walk = options.use != IndexUse::proven && options.use != IndexUse::beside;
  const bool requires_one = options.use == IndexUse::require || !may_walk;
  if (requires_one && (!may_walk || found.unconfirmed.empty())) {
    throw_without_index();
  }
  const bool is_kept = options.use != IndexUse::memory || !options.folder.empty();
  // No check if the walk may confirm an existing index.
  if (!options.folder.empty() && !requires_one && found.unconfirmed.empty()) {
    check_place_for(*places.in_folder, options);
  }
  bool is_whole = true;
  const WalkOptions walking{compression, WalkedSpans::first, options.at_damage, options.storage};
  IndexedShard shard = walk_into_index(file, walking, is_kept, progress, &is_whole);
  if (!is_whole) return shard;
  // An index of another state that has these records stays: the folder may be read-only.
  const bool confirmed = is_confirmed(found, *shard.index);
  if (requires_one && !confirmed) throw_without_index();
  if (!options.folder.empty() && !confirmed) {
    shard.index_path = keep_index(*places.in_folder, *shard.index);
  } else if (options.use != IndexUse::memory) {
    keep_in_cache(*shard.index, shard_path);
  }
  return shard;
}

IndexedShard build_index(const std::shared_ptr<const StoredFile>& file, const IndexOptions& options,
                         bool force, const WalkProgress& progress) {
  const std::optional<Compression> resolved = resolve_compression(*file, options.compression);
  if (!resolved) return unreadable_shard(file, *options.compression);
  std::optional<IndexPlace> place;  // empty: the user's cache
  if (!options.folder.empty() || !file->traits().is_remote) {
    place = place_for(options.folder, file->path());
  }
  if (place && !force) {
    // The cache serves only this user, but the index may serve all users.
    const FoundIndex found = look_in({place, {}}, options, *file, *resolved);
    if (found.fitting != nullptr) {
      if (progress) progress(file->bytes());
      return {as_indexed(file, *found.fitting), found.fitting, false, found.fitting->origin()};
    }
  }
  if (place) check_place_for(*place, options);
  bool is_whole = true;
  IndexedShard shard = walk_into_index(file, {*resolved}, true, progress, &is_whole);
  if (place) {
    shard.index_path = keep_index(*place, *shard.index);
  } else {
    keep_in_cache(*shard.index, file->path());
    shard.index_path = cached_index_path(file->path());
  }
  return shard;
}

void cache_indexes(const std::vector<std::string>& urls, const std::string& index) {
  const auto made = FolderIndex::load(index);
  for (const std::string& url : urls) {
    const IndexPlace place = place_in(folder_of(index), url);
    const DirectoryEntry* const entry =
        made == nullptr ? nullptr : made->find(place.name, place.data);
    if (entry == nullptr) refuse_index(index, "it has no shard '" + url + "'.");
    put_in_cache(*made->open(*entry), url);
  }
}

std::string save_index_of_object(const std::shared_ptr<const StoredFile>& object,
                                 const IndexedShard& shard, const std::string& folder,
                                 bool folder_is_shared) {
  const ShardFacts& known = shard.index->facts();
  if (known.file_bytes != object->facts().bytes) {
    throw Error(ErrorKind::stale_index,
                "'" + object->path() + "' has " + std::to_string(object->facts().bytes) +
                    " bytes, and its index is of a shard that has " +
                    std::to_string(known.file_bytes) +
                    ". The object was replaced meanwhile: build its index again.",
                {object->path(), {}, {}});
  }
  const std::span<const Damage> damage = shard.index->damage();
  const ShardIndex index(
      facts_of(object->facts(), known.stream_bytes, known.compression, object->await_settled()),
      shard.index->copy_packed(), std::vector<Damage>{damage.begin(), damage.end()},
      shard.index->seek_points());
  keep_in_cache(index, object->path());
  const IndexPlace place = place_in(folder, object->path());
  return keep_index(folder_is_shared ? place : IndexPlace{folder, place.name, 0}, index);
}

}  // namespace tfrfast
