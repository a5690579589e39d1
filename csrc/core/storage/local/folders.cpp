#include "core/storage/local/folders.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "core/base/error.h"

namespace tfrfast {
namespace {

NameKind kind_of(mode_t mode) noexcept {
  if (S_ISREG(mode)) return NameKind::file;
  if (S_ISDIR(mode)) return NameKind::folder;
  return S_ISLNK(mode) ? NameKind::link : NameKind::other;
}

NameStatus status_from(const struct stat& status) noexcept {
  return {kind_of(status.st_mode), static_cast<std::uint64_t>(status.st_size),
          status.st_uid,           (status.st_mode & (S_IWGRP | S_IWOTH)) != 0,
          status.st_mtime,         std::max(status.st_atime, status.st_mtime)};
}

}  // namespace

std::string folder_of(const std::string& path) {
  const auto slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  const auto last = path.find_last_not_of('/', slash);  // "a//b" lies in "a"
  return last == std::string::npos ? "/" : path.substr(0, last + 1);
}

std::string name_of(const std::string& path) {
  const auto slash = path.find_last_of('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

std::string absolute_path(const std::string& path) {
  if (path.starts_with('/')) return path;
  std::error_code unknown_folder;
  const std::string here = std::filesystem::current_path(unknown_folder).string();
  return unknown_folder ? path : here + (here.ends_with('/') ? "" : "/") + path;
}

std::string resolve_path(const std::string& path) {
  char* const resolved = ::realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return path;
  std::string result = resolved;
  std::free(resolved);
  return result;
}

NameStatus look_at(const std::string& path) noexcept {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 ? status_from(status) : NameStatus();
}

NameStatus look_at_name(const std::string& path) noexcept {
  struct stat status;
  return ::lstat(path.c_str(), &status) == 0 ? status_from(status) : NameStatus();
}

std::vector<std::string> list_folder(const std::string& folder) {
  DIR* const listing = ::opendir(folder.c_str());
  if (listing == nullptr) throw_system_error(errno, "Listing folder", folder);
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(listing)) names.emplace_back(entry->d_name);
  ::closedir(listing);
  return names;
}

bool remove_file(const std::string& path) noexcept {
  return ::unlink(path.c_str()) == 0;
}

bool remove_folder(const std::string& folder) noexcept {
  return ::rmdir(folder.c_str()) == 0;
}

void flush_folder(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) throw_system_error(errno, "Opening folder", folder);
  const int failed = ::fsync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  // Some network filesystems can never flush a folder.
  if (failed != 0 && failed != EINVAL && failed != ENOTSUP) {
    throw_system_error(failed, "Flushing folder", folder);
  }
}

void make_folders(const std::string& folder, unsigned mode) {
  if (folder.empty() || ::mkdir(folder.c_str(), mode) == 0) return;
  int failed = errno;
  const std::string parent = folder_of(folder);
  if (failed == ENOENT && parent != folder) {
    make_folders(parent, mode);
    failed = ::mkdir(folder.c_str(), mode) == 0 ? 0 : errno;
  }
  if (failed == 0) return;
  if (failed != EEXIST) throw_system_error(failed, "Making folder", folder);
  struct stat status;
  if (::stat(folder.c_str(), &status) == 0 && !S_ISDIR(status.st_mode)) {
    throw_system_error(ENOTDIR, "Making folder", folder,
                       "A file has that name: move it, or use another folder.");
  }
}

NewFolders::NewFolders(const std::string& folder) {
  for (std::string each = folder; !each.empty() && look_at(each).kind == NameKind::nothing;) {
    std::string parent = folder_of(each);
    missing_.push_back(std::move(each));
    each = std::move(parent);
  }
}

NewFolders::~NewFolders() {
  if (!home_.is_this_one()) return;
  for (const std::string& each : missing_) {
    if (::rmdir(each.c_str()) != 0 && errno != ENOENT) return;
  }
}

}  // namespace tfrfast
