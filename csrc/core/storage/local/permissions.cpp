#include "core/storage/local/permissions.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/error.h"

namespace tfrfast {
namespace {

// Excludes the bits that change the meaning of running a file (set-user-ID and the like).
constexpr mode_t kPermissions = S_IRWXU | S_IRWXG | S_IRWXO;

// Foreign filesystems have no modes to change.
bool has_no_modes(int error) {
  return error == EPERM || error == ENOTSUP || error == ENOSYS || error == EROFS;
}

}  // namespace

void take_permissions(int descriptor, const std::string& replaced) {
  struct stat wanted, own;
  if (::stat(replaced.c_str(), &wanted) != 0) return;
  if (::fstat(descriptor, &own) != 0) throw_system_error(errno, "Examining", replaced);
  const bool is_another_owner = wanted.st_uid != own.st_uid || wanted.st_gid != own.st_gid;
  if (is_another_owner && ::fchown(descriptor, wanted.st_uid, wanted.st_gid) != 0) {
    (void)!::fchown(descriptor, static_cast<uid_t>(-1), wanted.st_gid);
    if (::fstat(descriptor, &own) != 0) throw_system_error(errno, "Examining", replaced);
  } else {
    own.st_gid = wanted.st_gid;
  }
  mode_t mode = wanted.st_mode & kPermissions;
  if (own.st_gid != wanted.st_gid) {
    mode = (mode & ~static_cast<mode_t>(S_IRWXG)) | ((mode & S_IRWXO) << 3);
  }
  if (::fchmod(descriptor, mode) != 0 && !has_no_modes(errno)) {
    throw_system_error(errno, "Keeping the permissions of", replaced);
  }
}

void restrict_permissions(int descriptor, const std::string& replaced) noexcept {
  struct stat wanted, own;
  if (::stat(replaced.c_str(), &wanted) != 0 || ::fstat(descriptor, &own) != 0) return;
  const mode_t mode = (own.st_mode & wanted.st_mode & kPermissions) | S_IRUSR | S_IWUSR;
  if (mode != (own.st_mode & kPermissions)) (void)!::fchmod(descriptor, mode);
}

void take_write_permission_from_others(int descriptor) noexcept {
  struct stat own;
  constexpr mode_t kOthers = S_IWGRP | S_IWOTH;
  if (::fstat(descriptor, &own) != 0 || (own.st_mode & kOthers) == 0) return;
  (void)!::fchmod(descriptor, own.st_mode & kPermissions & ~kOthers);
}

}  // namespace tfrfast
