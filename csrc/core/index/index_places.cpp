#include "core/index/index_places.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "core/base/error.h"
#include "core/base/hashing.h"
#include "core/base/warnings.h"
#include "core/storage/local/folders.h"
#include "core/storage/local/users.h"
#include "core/storage/storage.h"

namespace tfrfast {
namespace {

constexpr std::string_view kFolderSuffix = ".tfrfast";
constexpr std::size_t kHexDigits = 16;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// A user who can write an index can hide or misplace records. A folder that does not exist yet will
// belong to this user alone.
bool is_ours_alone(const std::string& cache_folder) {
  const NameStatus status = look_at(cache_folder);
  if (status.kind == NameKind::nothing) return true;
  const bool is_ours = status.owner == this_user();
  if (is_ours && !status.others_may_write) return true;
  warn_once("cache " + cache_folder,
            "The index cache '" + cache_folder + "' is not used: " +
                (is_ours ? std::string("others may write to it. Take that away (`chmod go-w`)")
                         : "it belongs to " + name_of_user(status.owner) +
                               ", not to you. Move it"
                               " away") +
                ", or name another folder in TFRFAST_CACHE_DIR.");
  return false;
}

std::string hash_as_hex(const std::string& text) {
  std::uint64_t hash = fnv1a(text);  // after a collision, index_fits() refuses the index
  std::string hex(kHexDigits, '0');
  for (std::size_t digit = kHexDigits; digit-- > 0; hash >>= 4) {
    hex[digit] = "0123456789abcdef"[hash & 15];
  }
  return hex;
}

}  // namespace

std::string sibling_index_folder(const std::string& shard_path) {
  if (!has_sibling_folder(shard_path)) {
    throw Error(ErrorKind::invalid,
                "'" + shard_path +
                    "' lies directly in a bucket, and the index of its folder would lie in another "
                    "bucket. Use a folder in the bucket, or keep the index elsewhere.",
                {shard_path, {}, {}});
  }
  std::string folder = folder_of(shard_path);
  if (folder == "." || folder == ".." || folder.ends_with("/.") || folder.ends_with("/..")) {
    folder = resolve_path(folder);
  }
  return folder + std::string(kFolderSuffix);
}

bool has_sibling_folder(const std::string& shard_path) {
  if (is_local(shard_path)) return true;
  const std::string folder = folder_of(shard_path);
  const auto names = folder.begin() + static_cast<std::ptrdiff_t>(folder.find("://") + 3);
  return std::count(names, folder.end(), '/') >= storage_of(shard_path).root_names;
}

std::string data_folder_of(const std::string& index_folder) {
  if (!index_folder.ends_with(kFolderSuffix)) return "";
  std::string folder = index_folder.substr(0, index_folder.size() - kFolderSuffix.size());
  // `data/.tfrfast` is not a sibling: its shards may lie anywhere.
  if (folder.ends_with('/')) folder.clear();
  return folder;
}

std::string folder_index_path(const std::string& folder) {
  return folder + "/index";
}

bool is_folder_index(std::string_view file_name) {
  constexpr std::string_view kName = "index";
  if (!file_name.starts_with(kName)) return false;
  file_name.remove_prefix(kName.size());
  return file_name.empty() ||
         (file_name.size() > 1 && file_name.starts_with('-') &&
          file_name.find_first_not_of("0123456789", 1) == std::string_view::npos);
}

std::string own_index_path(const std::string& folder) {
  std::string path = folder_index_path(folder);
  const NameStatus status = look_at_name(path);
  if (status.kind == NameKind::nothing || status.owner == this_user()) return path;
  return path + "-" + std::to_string(this_user());
}

IndexPlace sibling_place(const std::string& shard_path) {
  return {sibling_index_folder(shard_path), name_of(shard_path), 0};
}

IndexPlace place_in(const std::string& folder, const std::string& shard_path) {
  const std::string data = resolve_path(folder_of(shard_path));
  const bool is_sibling = is_local(shard_path) && folder.ends_with(kFolderSuffix) &&
                          resolve_path(data_folder_of(folder)) == data;
  return {folder, name_of(shard_path), is_sibling ? 0 : fnv1a(data)};
}

IndexPlace place_for(const std::string& folder, const std::string& shard_path) {
  return folder.empty() ? sibling_place(shard_path) : place_in(folder, shard_path);
}

std::optional<IndexPlace> cached_place(const std::string& shard_path) {
  const std::string cache = index_cache_folder();
  if (cache.empty()) return {};
  const std::string resolved = resolve_path(shard_path);
  const std::string data = folder_of(resolved);
  std::string name = name_of(data);
  if (name.size() > 100) name.erase(50, name.size() - 100);  // file names have at most 255 bytes
  return IndexPlace{cache + "/" + hash_as_hex(data) + "-" + name, name_of(resolved), fnv1a(data),
                    data};
}

std::string cached_index_path(const std::string& shard_path) {
  const auto place = cached_place(shard_path);
  return place ? folder_index_path(place->folder) : "";
}

bool is_cached_folder(std::string_view name) {
  return name.size() > kHexDigits && name[kHexDigits] == '-' &&
         name.substr(0, kHexDigits).find_first_not_of("0123456789abcdef") == std::string_view::npos;
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

bool index_cache_is_ours() {
  const std::string folder = index_cache_folder();
  return !folder.empty() && is_ours_alone(folder);
}

bool make_cached_folder(const IndexPlace& cached) {
  if (!index_cache_is_ours()) return false;
  make_folders(cached.folder, 0700);
  return true;
}

}  // namespace tfrfast
