#include "core/storage/local/sidecar.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/error.h"
#include "core/base/platform.h"
#include "core/base/warnings.h"
#include "core/storage/local/file_descriptor.h"
#include "core/storage/local/folders.h"
#include "core/storage/local/users.h"
#include "core/storage/storage.h"

namespace tfrfast {
namespace {

// Describes the owner of a link. Empty unless `path` is a link that belongs to neither this user
// nor root.
std::string whose_link(const std::string& path) {
  const NameStatus status = look_at_name(path);
  if (status.kind != NameKind::link || is_trusted_user(status.owner)) return "";
  return "it is a link that belongs to " + name_of_user(status.owner) +
         ", who is neither you nor root";
}

#if !defined(TFRFAST_LINUX)
void set_last_use_back(int descriptor, const struct stat& before) noexcept {
#if defined(__APPLE__)
  const timespec times[2] = {before.st_atimespec, {0, UTIME_OMIT}};
#else
  const timespec times[2] = {before.st_atim, {0, UTIME_OMIT}};
#endif
  ::futimens(descriptor, times);
}
#endif

}  // namespace

bool may_be_believed(const Writers& file, const Writers& data) noexcept {
  if (!is_trusted_user(file.owner) && file.owner != data.owner) return false;
  if (data.all_may_write) return true;
  return !file.all_may_write &&
         (!file.group_may_write || (data.group_may_write && data.group == file.group));
}

std::string why_not_believed(const Writers& file, const std::string& data_path,
                             const Writers& data) {
  if (is_trusted_user(file.owner) || file.owner == data.owner) {
    return "users who may not write to '" + data_path +
           "' may write to it (`chmod go-w` takes that away)";
  }
  return "it belongs to " + name_of_user(file.owner) +
         ", who is neither you, nor root, nor the owner of '" + data_path + "'";
}

void refuse_link_of_stranger(const std::string& path) {
  const std::string why = whose_link(path);
  if (why.empty()) return;
  const std::string message = "'" + path + "' is ignored: " + why + ".";
  warn_once("link " + path, message + " Remove it.");
  throw Error(ErrorKind::stale_index, message, {path, {}, {}});
}

std::shared_ptr<const StoredFile> open_sidecar(const std::string& path,
                                               const StorageOptions& options) {
  if (!is_local(path)) return StoredFile::open(path, IoMode::mapped, options);
  refuse_link_of_stranger(folder_of(path));
  refuse_link_of_stranger(path);
  if (look_at(path).kind == NameKind::other) {
    throw Error(ErrorKind::stale_index,
                "'" + path + "' is not a regular file, as files of tfrfast are. Remove it.",
                {path, {}, {}});
  }
  return StoredFile::open(path, IoMode::mapped, options);
}

void make_sidecar_folder(const std::string& folder) {
  make_folders(folder);
  if (const std::string why = whose_link(folder); !why.empty()) {
    throw_system_error(
        ELOOP, "Keeping files in", folder,
        "tfrfast keeps no files there, because " + why + ". Remove it, or name another folder.");
  }
}

bool peek(const std::string& path, void* bytes, std::size_t count) noexcept {
  int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
#if defined(TFRFAST_LINUX)
  flags |= O_NOATIME;
#endif
  const FileDescriptor file(::open(path.c_str(), flags));
  struct stat status;
  const bool has_them = ::fstat(file.number(), &status) == 0 && S_ISREG(status.st_mode) &&
                        ::pread(file.number(), bytes, count, 0) == static_cast<ssize_t>(count);
#if !defined(TFRFAST_LINUX)
  if (has_them) set_last_use_back(file.number(), status);
#endif
  return has_them;
}

bool begins_like_sidecar(const std::string& path) noexcept {
  char bytes[kBeginningBytes] = {};
  if (!peek(path, bytes, sizeof bytes)) return look_at_name(path).is_empty_file();
  const auto is_beginning = [&](const char* magic) {
    return std::memcmp(bytes, magic, sizeof bytes) == 0;
  };
  return is_beginning(kFolderMagic) || is_beginning(kKeysMagic) || is_beginning(kStepsMagic) ||
         is_beginning(kLengthsMagic) || is_beginning("\0\0\0\0\0\0\0");
}

void check_sidecar_name(const std::string& path) {
  const std::string folder = folder_of(path);
  if (look_at_name(folder).kind != NameKind::folder) make_sidecar_folder(folder);
  if (look_at_name(path).kind == NameKind::nothing || begins_like_sidecar(path)) return;
  throw_system_error(EEXIST, "Replacing", path,
                     "It does not begin like a file of tfrfast. Move it away, or name another "
                     "folder.");
}

void commit_sidecar(PublishedFile& file, bool durable, Existing existing) {
  check_sidecar_name(file.path());
  file.keep_others_from_writing();
  file.commit(durable, existing);
}

}  // namespace tfrfast
