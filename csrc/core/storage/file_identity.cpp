#include "core/storage/file_identity.h"

#include <sys/stat.h>
#if defined(__linux__)
#include <sys/vfs.h>
#else
#include <sys/mount.h>
#include <sys/param.h>
#endif

#include <atomic>
#include <cerrno>

#include "core/base/error.h"

namespace tfrfast {
namespace {

std::atomic<int> assumed_to_last{-1};  // -1: nothing

// Wraps around, where a time was set that is centuries away.
std::int64_t nanoseconds(const timespec& time) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
                                   static_cast<std::uint64_t>(time.tv_nsec));
}

FileIdentity identity_from(const struct stat& status, const std::string& path) {
  if (S_ISDIR(status.st_mode)) {
    throw_system_error(EISDIR, "Opening", path, "Name the shards in it, with a glob for example.");
  }
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorKind::invalid,
                "'" + path +
                    "' is not a regular file. A shard is read at random, which pipes and "
                    "devices do not allow: copy it to a file.",
                {path, {}, {}});
  }
#if defined(__APPLE__)
  const auto& mtime = status.st_mtimespec;
  const auto& ctime = status.st_ctimespec;
#else
  const auto& mtime = status.st_mtim;
  const auto& ctime = status.st_ctim;
#endif
  return {static_cast<std::uint64_t>(status.st_dev),
          static_cast<std::uint64_t>(status.st_ino),
          static_cast<std::uint64_t>(status.st_size),
          nanoseconds(mtime),
          nanoseconds(ctime),
          status.st_uid};
}

Filesystem filesystem_from(const struct statfs& filesystem) {
  Filesystem found;
#if defined(__linux__)
  switch (static_cast<std::uint32_t>(filesystem.f_type)) {
    case 0x6969:      // NFS
    case 0x65735546:  // FUSE
    case 0xff534d42:  // CIFS
    case 0xfe534d42:  // SMB2
    case 0x517b:      // SMB
    case 0x01021997:  // 9P
    case 0x00c36400:  // Ceph
    case 0x0bd00bd0:  // Lustre
    case 0x47504653:  // GPFS
    case 0x5346414f:  // AFS
    case 0x19830326:  // BeeGFS
      found.is_remote = true;
      break;
    case 0xef53:      // ext2, ext3, ext4
    case 0x58465342:  // XFS
    case 0x9123683e:  // Btrfs
    case 0xf2f52010:  // F2FS
    case 0x2fc12fc1:  // ZFS
    case 0xca451a4e:  // bcachefs
    case 0x3153464a:  // JFS
    case 0x01021994:  // tmpfs: gone when it is mounted again
      found.identity_lasts = true;
      break;
    default:  // overlayfs, for one
      break;
  }
#else
  found.is_remote = (filesystem.f_flags & MNT_LOCAL) == 0;
#endif
  if (const int assumed = assumed_to_last.load(std::memory_order_relaxed); assumed >= 0) {
    found.identity_lasts = assumed != 0;
  }
  return found;
}

}  // namespace

FileIdentity identify_open_file(int descriptor, const std::string& path) {
  struct stat status;
  if (::fstat(descriptor, &status) != 0) throw_system_error(errno, "Inspecting", path);
  return identity_from(status, path);
}

FileIdentity identify_file(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) throw_system_error(errno, "Opening", path);
  return identity_from(status, path);
}

Filesystem filesystem_of(int descriptor) {
  struct statfs filesystem;
  return ::fstatfs(descriptor, &filesystem) == 0 ? filesystem_from(filesystem) : Filesystem();
}

Filesystem filesystem_of(const std::string& path) {
  struct statfs filesystem;
  return ::statfs(path.c_str(), &filesystem) == 0 ? filesystem_from(filesystem) : Filesystem();
}

void assume_identity_lasts(std::optional<bool> lasts) noexcept {
  assumed_to_last.store(lasts ? *lasts : -1, std::memory_order_relaxed);
}

}  // namespace tfrfast
