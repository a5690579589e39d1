#include "core/index/index_store.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>

#include "core/base/error.h"
#include "core/base/place.h"
#include "core/base/publish.h"
#include "core/base/warnings.h"
#include "core/deflate/inflated_file.h"
#include "core/index/index_file.h"

namespace tfrfast {
namespace {

constexpr const char* kSuffix = ".index";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string home_folder() {
  if (const std::string home = environment("HOME"); !home.empty()) return home;
  passwd entry;
  passwd* user = nullptr;
  char text[4096];
  ::getpwuid_r(::getuid(), &entry, text, sizeof text, &user);
  return user == nullptr ? "" : user->pw_dir;
}

std::string name_of_user(std::uint32_t number) {
  passwd entry;
  passwd* user = nullptr;
  char text[4096];
  ::getpwuid_r(number, &entry, text, sizeof text, &user);
  return "user " + std::to_string(number) +
         (user == nullptr ? "" : std::string(" (") + user->pw_name + ")");
}

// What others can write could hide records, or place them where they are not. A folder that is not
// there yet will be ours alone.
bool is_ours_alone(const std::string& cache_folder) {
  struct stat status;
  if (::stat(cache_folder.c_str(), &status) != 0) return true;
  const bool is_ours = status.st_uid == ::geteuid();
  if (is_ours && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0) return true;
  warn_once("cache " + cache_folder,
            "The index cache '" + cache_folder + "' is not used: " +
                (is_ours ? std::string("others may write to it. Take that away (`chmod go-w`)")
                         : "it belongs to " + name_of_user(status.st_uid) +
                               ", not to you. Move it"
                               " away") +
                ", or name another folder in TFRFAST_CACHE_DIR.");
  return false;
}

// Whoever makes an index can hide records. An owner of the data could do that anyway.
bool may_be_believed(std::uint32_t owner, const ShardFile& file) {
  return owner == ::geteuid() || owner == 0 || owner == file.identity().owner;
}

// The name that all links to a file share.
std::string resolve(const std::string& path) {
  char* resolved = ::realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return path;
  std::string result = resolved;
  std::free(resolved);
  return result;
}

std::string hash_as_hex(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a; a collision is found out by index_fits
  for (const char character : text) {
    hash = (hash ^ static_cast<std::uint8_t>(character)) * 0x100000001b3u;
  }
  std::string hex(16, '0');
  for (int digit = 15; digit >= 0; --digit, hash >>= 4) hex[digit] = "0123456789abcdef"[hash & 15];
  return hex;
}

// The path in the cache of what `key` determines, named after `name`; empty without a cache.
std::string path_in_cache(const std::string& key, std::string name) {
  const std::string folder = index_cache_folder();
  if (folder.empty()) return "";
  if (name.size() > 100) name.erase(50, name.size() - 100);  // file names have at most 255 bytes
  return folder + "/" + hash_as_hex(key) + "-" + name + kSuffix;
}

// A shard without an index, and the index, which is to be `kept` or not. `is_whole` becomes false
// if damage ended the scan.
IndexedShard scan_into_index(const std::shared_ptr<const ShardFile>& file, Compression compression,
                             AtDamage at_damage, bool kept, const ScanProgress& progress,
                             bool* is_whole) {
  const bool settled = kept && await_settled(*file);
  ShardScan scan = scan_shard(file, progress, compression, at_damage);
  *is_whole = scan.is_whole;
  auto index = index_of(*file, compression, std::move(scan), settled);
  return {as_indexed(file, *index), index, true, {}};
}

// What lies where an index may be.
struct Found {
  std::shared_ptr<const ShardIndex> fitting;  // the first one
  // If there is none: those of a shard of this size, which a scan may prove right.
  std::vector<std::shared_ptr<const ShardIndex>> unproven;
  std::string why_not;  // why what is there does not fit
};

enum class Proofs : std::uint8_t { count, ignored };

bool has_proof(const ShardIndex& index, const ShardFile& file) {
  const std::string path = proof_path(file.path(), index.origin());
  const std::optional<ShardFacts> proven = path.empty() ? std::nullopt : load_proof(path, index);
  return proven && is_in_state(*proven, index, file);
}

void look_at(const std::string& path, const ShardFile& file, Compression compression, Proofs proofs,
             Found* found) {
  try {
    std::uint32_t owner = 0;
    std::shared_ptr<const ShardIndex> index = load_index(path, &owner);
    if (index == nullptr) return;
    if (!may_be_believed(owner, file)) {
      found->why_not = "Index '" + path + "' is ignored: it belongs to " + name_of_user(owner) +
                       ", who is neither you, nor root, nor the owner of '" + file.path() + "'.";
      // Once for each folder: what holds one such index holds many.
      warn_once("owner " + std::to_string(owner) + " " + folder_of(path),
                found->why_not + " Remove it, or keep your own elsewhere: index=\"...\".");
      return;
    }
    const ShardFacts& facts = index->facts();
    const bool may_fit =
        facts.compression == compression && facts.file_bytes == file.identity().bytes;
    if (may_fit &&
        (index_fits(*index, file) || (proofs == Proofs::count && has_proof(*index, file)))) {
      found->fitting = std::move(index);
      return;
    }
    found->why_not = "Index '" + path + "' was made for another state of '" + file.path() + "' (" +
                     std::to_string(facts.file_bytes) + " bytes then, " +
                     std::to_string(file.identity().bytes) + " now, or other records).";
    if (may_fit) found->unproven.push_back(std::move(index));
  } catch (const Error& error) {
    found->why_not = error.message();
  }
}

std::vector<std::string> places_for(const std::string& shard_path, const IndexOptions& options) {
  if (!options.folder.empty()) {
    return {second_index_path_in(options.folder, shard_path),
            index_path_in(options.folder, shard_path)};
  }
  if (options.use == IndexUse::memory) return {};
  std::vector<std::string> places{sibling_index_path(shard_path)};
  const std::string cache = index_cache_folder();
  if (!cache.empty() && is_ours_alone(cache)) places.push_back(cached_index_path(shard_path));
  return places;
}

Found look_for_index(const std::vector<std::string>& places, const ShardFile& file,
                     Compression compression, Proofs proofs = Proofs::count) {
  Found found;
  for (const std::string& place : places) {
    look_at(place, file, compression, proofs, &found);
    if (found.fitting != nullptr) break;
  }
  return found;
}

// The one that `scanned` proves right; null if there is none.
std::shared_ptr<const ShardIndex> proven_by(const ShardIndex& scanned, const Found& found,
                                            const std::shared_ptr<const ShardFile>& file) {
  for (const auto& index : found.unproven) {
    if (is_proven_by(scanned, *index, file)) return index;
  }
  return nullptr;
}

// The user's cache, ready to be written to; empty if it is not to be used.
std::string writable_cache() {
  std::string folder = index_cache_folder();
  if (folder.empty() || !is_ours_alone(folder)) return "";
  make_folders(folder, 0700);
  return folder;
}

void keep_in_cache(const ShardIndex& index, const std::string& shard_path) noexcept {
  try {
    // Not durable: an index that a power cut has torn is noticed and built again.
    if (!writable_cache().empty()) save_index(index, cached_index_path(shard_path), false);
  } catch (const std::exception&) {
    // A full or unwritable cache costs the next opening its time, and nothing else.
  }
}

// That `scanned` has proven `index`.
void remember_proof(const ShardIndex& index, const ShardIndex& scanned,
                    const std::string& shard_path) noexcept {
  if (!scanned.facts().settled) return;
  try {
    if (writable_cache().empty()) return;
    if (index.origin() == cached_index_path(shard_path)) {
      keep_in_cache(scanned, shard_path);  // it is ours: the same one, of this state
    } else {
      save_proof(proof_path(shard_path, index.origin()), index, scanned.facts());
    }
  } catch (const std::exception&) {
    // The next opening scans again.
  }
}

// Whether what lies at `path` is an index of another shard, or of another state of this one.
bool is_anothers(const std::string& path, const ShardIndex& scanned,
                 const std::shared_ptr<const ShardFile>& file) {
  try {
    const auto index = load_index(path);
    return index != nullptr && !is_proven_by(scanned, *index, file);
  } catch (const Error&) {
    return false;
  }
}

// Whether an index could be saved in one of `places`, now rather than after scanning for long. The
// last one, if others' shards may have taken it, need not be the one.
void check_index_places(const std::vector<std::string>& places) {
  make_folders(folder_of(places.back()));
  struct stat status;
  const bool is_taken =
      places.size() > 1 && ::lstat(places.back().c_str(), &status) == 0 && !S_ISDIR(status.st_mode);
  check_place(is_taken ? places.front() : places.back(), "Keeping an index in",
              "Name another folder for indexes.");
}

// Saves an index in a folder that may keep those of many data folders, whose shards may share
// names: the first comer has the plain name, and keeps it unless its index is of no use. Where the
// index is now.
std::string save_in_shared_folder(const ShardIndex& index, const std::string& folder,
                                  const std::shared_ptr<const ShardFile>& file) {
  const std::string plain = index_path_in(folder, file->path());
  const std::string second = second_index_path_in(folder, file->path());
  if (::access(second.c_str(), F_OK) != 0) {
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

}  // namespace

std::optional<Compression> resolve_compression(const ShardFile& file,
                                               std::optional<Compression> expected) {
  const Compression found = detect_compression(file);
  const Compression compression = expected.value_or(found);
  // Nothing compressed is nothing.
  if (found == Compression::none && file.bytes() == 0) return Compression::none;
  if (compression != Compression::none && compression != found) return {};
  return found == Compression::none ? Compression::none : compression;
}

IndexedShard unreadable_shard(std::shared_ptr<const ShardFile> file, Compression expected) {
  const std::uint64_t bytes = file->bytes();
  auto index = std::make_shared<const ShardIndex>(
      facts_of(file->identity(), file->identity_lasts(), bytes, expected, false),
      std::vector<std::uint64_t>{0}, std::vector<Damage>{{DamageKind::bad_stream, 0, bytes, 0, 0}});
  return {std::move(file), std::move(index), false, {}};
}

std::shared_ptr<const ShardIndex> find_index(const ShardFile& file, Compression compression,
                                             const IndexOptions& options) {
  return look_for_index(places_for(file.path(), options), file, compression).fitting;
}

void remember_scan(const std::shared_ptr<const ShardFile>& file, const ShardIndex& scanned,
                   const IndexOptions& options) noexcept {
  try {
    const Found found =
        look_for_index(places_for(file->path(), options), *file, scanned.facts().compression);
    if (found.fitting != nullptr) return;  // somebody was faster
    if (const auto index = proven_by(scanned, found, file); index != nullptr) {
      remember_proof(*index, scanned, file->path());
    } else {
      keep_in_cache(scanned, file->path());
    }
  } catch (const std::exception&) {
    // The next opening scans again.
  }
}

std::shared_ptr<const ShardFile> as_indexed(std::shared_ptr<const ShardFile> file,
                                            const ShardIndex& index) {
  if (index.seek_points() == nullptr) return file;
  return std::make_shared<const InflatedFile>(std::move(file), index.facts().compression,
                                              index.seek_points());
}

std::shared_ptr<const ShardIndex> index_of(const ShardFile& file, Compression compression,
                                           ShardScan scan, bool settled) {
  const std::uint64_t stream_bytes =
      scan.seek_points == nullptr ? file.bytes() : scan.seek_points->stream_bytes();
  return std::make_shared<const ShardIndex>(
      facts_of(file.identity(), file.identity_lasts(), stream_bytes, compression, settled),
      std::move(scan.offsets), std::move(scan.damage), std::move(scan.seek_points));
}

std::string sibling_index_path(const std::string& shard_path) {
  std::string folder = folder_of(shard_path);
  if (folder == "." || folder == ".." || folder.ends_with("/.") || folder.ends_with("/..")) {
    folder = resolve(folder);
  }
  return index_path_in(folder == "/" ? "/.tfrfast" : folder + ".tfrfast", shard_path);
}

std::string index_path_in(const std::string& folder, const std::string& shard_path) {
  return folder + "/" + name_of(shard_path) + kSuffix;
}

std::string second_index_path_in(const std::string& folder, const std::string& shard_path) {
  const std::string data_folder = resolve(folder_of(shard_path));
  return folder + "/" + name_of(shard_path) + "-" + hash_as_hex(data_folder) + kSuffix;
}

std::string cached_index_path(const std::string& shard_path) {
  const std::string resolved = resolve(shard_path);
  return path_in_cache(resolved, name_of(resolved));
}

std::string proof_path(const std::string& shard_path, const std::string& index_path) {
  const std::string resolved = resolve(shard_path);
  return path_in_cache(resolved + "\n" + resolve(index_path), name_of(resolved) + ".proof");
}

std::string index_cache_folder() {
  std::string folder = environment("TFRFAST_CACHE_DIR");
  if (folder.empty()) {
    folder = environment("XDG_CACHE_HOME");
    const std::string home = folder.empty() ? home_folder() : "";
    if (!home.empty()) folder = home + "/.cache";
    if (folder.empty()) return "";
    folder += "/tfrfast";
  }
  return folder + "/index";
}

IndexedShard open_indexed(const std::string& shard_path, IoMode io, const IndexOptions& options,
                          const ScanProgress& progress) {
  const std::shared_ptr<const ShardFile> file = ShardFile::open(shard_path, io);
  const std::optional<Compression> resolved = resolve_compression(*file, options.compression);
  if (!resolved) return unreadable_shard(file, *options.compression);
  const Compression compression = *resolved;
  const std::vector<std::string> places = places_for(shard_path, options);
  const Found found = look_for_index(places, *file, compression);
  if (found.fitting != nullptr) {
    if (progress) progress(file->bytes());
    return {as_indexed(file, *found.fitting), found.fitting, false, found.fitting->origin()};
  }
  const auto throw_without_index = [&] {
    std::string searched;
    for (const std::string& place : places)
      searched += (searched.empty() ? "'" : ", '") + place + "'";
    throw Error(
        ErrorKind::stale_index,
        (found.why_not.empty() ? "'" + shard_path + "' has no index (looked at " + searched + ")."
                               : found.why_not) +
            " Build it: `tfrfast index " + shard_path + "`, or open with index=\"auto\".",
        {shard_path, {}, {}});
  };
  const bool requires_one = options.use == IndexUse::require || options.use == IndexUse::proven;
  if (requires_one && (options.use == IndexUse::proven || found.unproven.empty())) {
    throw_without_index();
  }
  const bool is_kept = options.use != IndexUse::memory || !options.folder.empty();
  // Unless one that is there may turn out to be right.
  if (!options.folder.empty() && !requires_one && found.unproven.empty()) {
    check_index_places(places);
  }
  bool is_whole = true;
  IndexedShard shard =
      scan_into_index(file, compression, options.at_damage, is_kept, progress, &is_whole);
  if (!is_whole) return shard;
  if (const auto index = proven_by(*shard.index, found, file); index != nullptr) {
    remember_proof(*index, *shard.index, shard_path);
    return {as_indexed(file, *index), index, false, index->origin()};
  }
  if (requires_one) throw_without_index();
  if (!options.folder.empty()) {
    shard.index_path = save_in_shared_folder(*shard.index, options.folder, file);
  } else if (options.use == IndexUse::automatic) {
    keep_in_cache(*shard.index, shard_path);
  }
  return shard;
}

IndexedShard build_index(const std::string& shard_path, const std::string& folder, bool force,
                         std::optional<Compression> compression, const ScanProgress& progress) {
  const std::shared_ptr<const ShardFile> file = ShardFile::open(shard_path);
  const std::optional<Compression> resolved = resolve_compression(*file, compression);
  if (!resolved) return unreadable_shard(file, *compression);
  const Compression kind = *resolved;
  const std::vector<std::string> places =
      folder.empty() ? std::vector<std::string>{sibling_index_path(shard_path)}
                     : places_for(shard_path, {IndexUse::automatic, folder, {}});
  if (!force) {
    // A proof is for this user alone, and the index may be for all.
    const Found found = look_for_index(places, *file, kind, Proofs::ignored);
    if (found.fitting != nullptr) {
      if (progress) progress(file->bytes());
      return {as_indexed(file, *found.fitting), found.fitting, false, found.fitting->origin()};
    }
  }
  check_index_places(places);
  bool is_whole = true;
  IndexedShard shard = scan_into_index(file, kind, AtDamage::get_over, true, progress, &is_whole);
  if (folder.empty()) {
    shard.index_path = places.front();
    save_index(*shard.index, shard.index_path, true);
  } else {
    shard.index_path = save_in_shared_folder(*shard.index, folder, file);
  }
  return shard;
}

}  // namespace tfrfast
