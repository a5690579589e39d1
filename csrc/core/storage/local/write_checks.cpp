#include "core/storage/local/write_checks.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "core/base/error.h"
#include "core/storage/local/folders.h"
#include "core/storage/local/users.h"

namespace tfrfast {
namespace {

// In folders like /tmp, only the owner of a file may remove or replace the file.
bool may_not_be_replaced(const struct stat& file, const std::string& path) {
  struct stat folder;
  if (::stat(folder_of(path).c_str(), &folder) != 0 || (folder.st_mode & S_ISVTX) == 0) {
    return false;
  }
  const uid_t me = ::geteuid();
  return me != 0 && file.st_uid != me && folder.st_uid != me;
}

// Throws Error io (ELOOP) if another user may have planted the link `path` to lead a writer to
// another file: the link belongs to neither this user nor root, and other users may write to its
// folder.
void refuse_planted_link(const std::string& path) {
  const NameStatus link = look_at_name(path);
  if (link.kind != NameKind::link || is_trusted_user(link.owner)) return;
  const NameStatus folder = look_at(folder_of(path));
  if (!folder.others_may_write && is_trusted_user(folder.owner)) return;
  throw_system_error(ELOOP, "Creating", path,
                     "It is a link that belongs to " + name_of_user(link.owner) +
                         ", in a folder that others may write to. Remove it, or write elsewhere.");
}

}  // namespace

void check_name(const std::string& path, const std::string& action, const std::string& advice) {
  struct stat status;
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno != ENOENT) throw_system_error(errno, action, path, advice);
    return;
  }
  if (S_ISDIR(status.st_mode)) throw_system_error(EISDIR, action, path, advice);
  if (may_not_be_replaced(status, path)) throw_system_error(EPERM, action, path, advice);
}

void check_place(const std::string& path, const std::string& action, const std::string& advice) {
  check_name(path, action, advice);
  try {
    const PublishedFile unnamed(path);
  } catch (const Error& error) {
    throw_system_error(error.system_error(), action, path, advice);
  }
}

void check_flushable(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) {
    throw_system_error(errno, "Opening folder", folder,
                       "To flush it to the disk it must be readable: pass sync=False, or change "
                       "its permissions.");
  }
  ::close(descriptor);
}

std::string checked_target(const std::string& path, Existing existing) {
  if (path.empty()) throw_system_error(ENOENT, "Creating", path);
  if (path.back() == '/') throw_system_error(EISDIR, "Creating", path);
  refuse_planted_link(path);
  const NameKind kind = look_at(path).kind;
  if (kind != NameKind::nothing) {
    if (kind == NameKind::folder) throw_system_error(EISDIR, "Creating", path);
    if (kind != NameKind::file) {
      throw Error(ErrorKind::invalid,
                  "'" + path +
                      "' is not a regular file, so no shard can be published there. Give the name "
                      "of a file.",
                  {path, {}, {}});
    }
    if (existing == Existing::keep) {
      throw_system_error(EEXIST, "Creating", path, "Pass overwrite=True to replace it.");
    }
  }
  std::error_code ignored;
  std::string target = path;
  if (std::filesystem::is_symlink(path, ignored)) {
    const std::filesystem::path followed = std::filesystem::weakly_canonical(path, ignored);
    if (!ignored) target = followed.string();
  }
  check_name(target, "Creating", "");
  return target;
}

}  // namespace tfrfast
