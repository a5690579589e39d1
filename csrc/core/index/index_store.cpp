#include "core/index/index_store.h"

#include <dirent.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>

#include "core/base/error.h"
#include "core/base/publish.h"
#include "core/deflate/inflated_file.h"
#include "core/index/index_file.h"

namespace tfrfast {
namespace {

constexpr const char* kSuffix = ".index";
constexpr std::uint64_t kDefaultCacheBytes = std::uint64_t{4} << 30;
constexpr std::uint64_t kFewSamples = 4;
constexpr std::uint64_t kManySamples = 64;

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
  return user == nullptr ? "/tmp" : user->pw_dir;
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

bool record_fits(const ShardIndex& index, const ShardFile& file, std::uint64_t number) {
  const Frame frame = index.frame(number);
  std::uint8_t bytes[kHeaderBytes];
  file.read(frame.offset, bytes, sizeof bytes);
  const FrameHeader header = decode_header(bytes);
  return header_is_intact(header) && header.payload_bytes == frame.payload_bytes;
}

// Whether `fits` holds for the first and the last of `count` things, and some evenly between.
template <class Fits>
bool all_samples(std::uint64_t count, std::uint64_t most, const Fits& fits) {
  const std::uint64_t samples = std::min(count, most);
  if (samples == 1) return fits(0);
  for (std::uint64_t sample = 0; sample < samples; ++sample) {
    // In two steps, lest the product overflow.
    const std::uint64_t number =
        (count - 1) / (samples - 1) * sample + (count - 1) % (samples - 1) * sample / (samples - 1);
    if (!fits(number)) return false;
  }
  return true;
}

// A shard without an index, and the index.
IndexedShard scan_into_index(const std::shared_ptr<const ShardFile>& file, Compression compression,
                             const ScanProgress& progress) {
  ShardScan scan = scan_shard(file, progress, compression);
  auto index = index_of(*file, compression, std::move(scan));
  return {as_indexed(file, *index), index, true, {}};
}

// A fitting index at `path`, or null. Why one that is there does not do goes to `why_not`.
std::shared_ptr<const ShardIndex> find_fitting(const std::string& path, const ShardFile& file,
                                               Compression compression, std::string* why_not) {
  try {
    std::shared_ptr<const ShardIndex> index = load_index(path);
    if (index == nullptr) return nullptr;
    if (index->facts().compression == compression && index_fits(*index, file)) return index;
    *why_not = "Index '" + path + "' was made for another state of '" + file.path() + "' (" +
               std::to_string(index->facts().file_bytes) + " bytes then, " +
               std::to_string(file.identity().bytes) + " now, or other records).";
  } catch (const Error& error) {
    *why_not = error.message();
  }
  return nullptr;
}

std::vector<std::string> places_for(const std::string& shard_path, const IndexOptions& options) {
  if (!options.folder.empty()) {
    return {second_index_path_in(options.folder, shard_path),
            index_path_in(options.folder, shard_path)};
  }
  if (options.use == IndexUse::memory) return {};
  return {sibling_index_path(shard_path), cached_index_path(shard_path)};
}

std::shared_ptr<const ShardIndex> find_fitting_among(const std::vector<std::string>& places,
                                                     const ShardFile& file, Compression compression,
                                                     std::string* why_not) {
  for (const std::string& place : places) {
    if (auto index = find_fitting(place, file, compression, why_not)) return index;
  }
  return nullptr;
}

bool is_whole_index(const std::string& path) {
  try {
    return load_index(path) != nullptr;
  } catch (const Error&) {
    return false;
  }
}

// Saves an index in a folder that may keep those of many data folders, whose shards may share
// names: the first comer has the plain name, and keeps it unless its index is of no use. Where the
// index is now.
std::string save_in_shared_folder(const ShardIndex& index, const std::string& folder,
                                  const ShardFile& file) {
  make_folders(folder);
  const std::string plain = index_path_in(folder, file.path());
  const std::string second = second_index_path_in(folder, file.path());
  if (::access(second.c_str(), F_OK) != 0) {
    try {
      save_index(index, plain, true, Existing::keep);
      return plain;
    } catch (const Error& error) {
      if (error.system_error() != EEXIST) throw;
    }
    std::string why_not;
    if (!is_whole_index(plain) ||
        find_fitting(plain, file, index.facts().compression, &why_not) != nullptr) {
      save_index(index, plain, true);
      return plain;
    }
  }
  save_index(index, second, true);
  return second;
}

}  // namespace

Compression resolve_compression(const ShardFile& file, std::optional<Compression> expected) {
  const Compression found = detect_compression(file);
  const Compression compression = expected.value_or(found);
  // Nothing compressed is nothing.
  if (compression != Compression::none && compression != found && file.bytes() > 0) {
    const std::string name = compression_name(compression);
    throw Error(ErrorKind::invalid,
                "'" + file.path() + "' does not begin like a " + name +
                    "-compressed file, which compression=\"" + name +
                    "\" says it is. Leave compression out to find out what it is.",
                {file.path(), {}, {}});
  }
  return found == Compression::none ? Compression::none : compression;
}

std::shared_ptr<const ShardIndex> find_index(const ShardFile& file, Compression compression,
                                             const IndexOptions& options) {
  std::string why_not;
  return find_fitting_among(places_for(file.path(), options), file, compression, &why_not);
}

std::shared_ptr<const ShardFile> as_indexed(std::shared_ptr<const ShardFile> file,
                                            const ShardIndex& index) {
  if (index.seek_points() == nullptr) return file;
  return std::make_shared<const InflatedFile>(std::move(file), index.facts().compression,
                                              index.seek_points());
}

std::shared_ptr<const ShardIndex> index_of(const ShardFile& file, Compression compression,
                                           ShardScan scan) {
  const std::uint64_t stream_bytes =
      scan.seek_points == nullptr ? file.bytes() : scan.seek_points->stream_bytes();
  return std::make_shared<const ShardIndex>(
      ShardFacts{file.identity().bytes, file.identity().mtime_ns, stream_bytes, compression},
      std::move(scan.offsets), std::move(scan.damage), std::move(scan.seek_points));
}

void keep_in_cache(const ShardIndex& index, const std::string& shard_path) noexcept {
  try {
    const std::string path = cached_index_path(shard_path);
    make_folders(folder_of(path));
    // Not durable: an index that a power cut has torn is noticed and built again.
    save_index(index, path, false);
  } catch (const std::exception&) {
    // A full or unwritable cache costs the next opening its time, and nothing else.
  }
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
  std::string name = name_of(resolved);
  name.resize(std::min<std::size_t>(name.size(), 100));  // file names have at most 255 bytes
  return index_cache_folder() + "/" + hash_as_hex(resolved) + "-" + name + kSuffix;
}

std::string index_cache_folder() {
  std::string folder = environment("TFRFAST_CACHE_DIR");
  if (folder.empty()) {
    const std::string caches = environment("XDG_CACHE_HOME");
    folder = (caches.empty() ? home_folder() + "/.cache" : caches) + "/tfrfast";
  }
  return folder + "/index";
}

std::vector<CachedIndex> list_index_cache() {
  std::vector<CachedIndex> found;
  const std::string folder = index_cache_folder();
  DIR* listing = ::opendir(folder.c_str());
  if (listing == nullptr) {
    if (errno == ENOENT) return found;
    throw_system_error(errno, "Listing folder", folder);
  }
  while (const dirent* entry = ::readdir(listing)) {
    const std::string path = folder + "/" + entry->d_name;
    struct stat status;
    if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    const std::int64_t used_s = std::max(status.st_atime, status.st_mtime);
    found.push_back({path, static_cast<std::uint64_t>(status.st_size), used_s * 1'000'000'000});
  }
  ::closedir(listing);
  std::sort(found.begin(), found.end(), [](const CachedIndex& a, const CachedIndex& b) {
    return a.last_used_ns != b.last_used_ns ? a.last_used_ns < b.last_used_ns : a.path < b.path;
  });
  return found;
}

std::size_t prune_index_cache(std::uint64_t most_bytes) noexcept {
  std::size_t removed = 0;
  try {
    const std::vector<CachedIndex> cached = list_index_cache();
    std::uint64_t total = 0;
    for (const CachedIndex& each : cached) total += each.bytes;
    for (const CachedIndex& each : cached) {
      if (total <= most_bytes) break;
      if (::unlink(each.path.c_str()) == 0) ++removed;
      total -= each.bytes;
    }
  } catch (const std::exception&) {
    // Another process prunes too, or the folder is gone: nothing to do.
  }
  return removed;
}

std::uint64_t index_cache_limit_bytes() {
  const std::string text = environment("TFRFAST_CACHE_BYTES");
  char* end = nullptr;
  const unsigned long long bytes = std::strtoull(text.c_str(), &end, 10);
  return text.empty() || *end != '\0' ? kDefaultCacheBytes : bytes;
}

bool index_fits(const ShardIndex& index, const ShardFile& file) {
  const ShardFacts& facts = index.facts();
  if (facts.file_bytes != file.identity().bytes) return false;
  const std::uint64_t count = index.record_count();
  if (count == 0) return facts.mtime_ns == file.identity().mtime_ns || file.bytes() == 0;
  const bool touched = facts.mtime_ns != file.identity().mtime_ns;
  if (touched && !index.damage().empty()) return false;  // perhaps it was repaired
  const std::uint64_t most = touched ? kManySamples : kFewSamples;
  // To look at records of a compressed shard, they would have to be inflated.
  if (const SeekPoints* points = index.seek_points().get(); points != nullptr) {
    return all_samples(points->size(), most, [&](std::uint64_t number) {
      const Span span = (*points)[static_cast<std::size_t>(number)];
      return crc_of_sample(file, span.place.file_offset) == span.file_crc;
    });
  }
  return all_samples(count, most,
                     [&](std::uint64_t number) { return record_fits(index, file, number); });
}

IndexedShard open_indexed(const std::string& shard_path, IoMode io, const IndexOptions& options,
                          const ScanProgress& progress) {
  const std::shared_ptr<const ShardFile> file = ShardFile::open(shard_path, io);
  const Compression compression = resolve_compression(*file, options.compression);
  const std::vector<std::string> places = places_for(shard_path, options);
  std::string why_not;
  if (auto index = find_fitting_among(places, *file, compression, &why_not)) {
    if (progress) progress(file->bytes());
    return {as_indexed(file, *index), index, false, index->origin()};
  }
  if (options.use == IndexUse::require) {
    std::string searched;
    for (const std::string& place : places)
      searched += (searched.empty() ? "'" : ", '") + place + "'";
    throw Error(ErrorKind::stale_index,
                (why_not.empty() ? "'" + shard_path + "' has no index (looked at " + searched + ")."
                                 : why_not) +
                    " Build it: `tfrfast index " + shard_path + "`, or open with index=\"auto\".",
                {shard_path, {}, {}});
  }
  IndexedShard shard = scan_into_index(file, compression, progress);
  if (!options.folder.empty()) {
    shard.index_path = save_in_shared_folder(*shard.index, options.folder, *file);
  } else if (options.use == IndexUse::automatic) {
    keep_in_cache(*shard.index, shard_path);
  }
  return shard;
}

IndexedShard build_index(const std::string& shard_path, const std::string& folder, bool force,
                         std::optional<Compression> compression, const ScanProgress& progress) {
  const std::shared_ptr<const ShardFile> file = ShardFile::open(shard_path);
  const Compression found = resolve_compression(*file, compression);
  const std::vector<std::string> places =
      folder.empty() ? std::vector<std::string>{sibling_index_path(shard_path)}
                     : places_for(shard_path, {IndexUse::automatic, folder, {}});
  std::string why_not;
  if (auto index = force ? nullptr : find_fitting_among(places, *file, found, &why_not)) {
    if (progress) progress(file->bytes());
    return {as_indexed(file, *index), index, false, index->origin()};
  }
  IndexedShard shard = scan_into_index(file, found, progress);
  if (folder.empty()) {
    shard.index_path = places.front();
    make_folders(folder_of(shard.index_path));
    save_index(*shard.index, shard.index_path, true);
  } else {
    shard.index_path = save_in_shared_folder(*shard.index, folder, *file);
  }
  return shard;
}

}  // namespace tfrfast
