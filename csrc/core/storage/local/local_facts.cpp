#include "core/storage/local/local_facts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/platform.h"
#if defined(TFRFAST_LINUX)
#include <sys/vfs.h>
#elif defined(__APPLE__)
#include <sys/mount.h>
#include <sys/param.h>
#endif

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "core/base/error.h"

namespace tfrfast {
namespace {

std::atomic<int> assumed_to_last{-1};  // -1: nothing is assumed

// Wraps around for times centuries away.
std::int64_t nanoseconds(const timespec& time) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
                                   static_cast<std::uint64_t>(time.tv_nsec));
}

// Whether a device, such as /dev/null, has no bytes.
bool is_empty_device(const struct stat& status, const std::string& path) {
  if (!S_ISCHR(status.st_mode)) return false;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return false;
  char byte;
  const bool is_empty = ::read(descriptor, &byte, 1) == 0;
  ::close(descriptor);
  return is_empty;
}

void refuse_unless_regular(const struct stat& status, const std::string& path) {
  if (S_ISDIR(status.st_mode)) {
    throw_system_error(EISDIR, "Opening", path, "Name the shards in it, with a glob for example.");
  }
  if (S_ISREG(status.st_mode) || is_empty_device(status, path)) return;
  throw Error(ErrorKind::invalid,
              "'" + path +
                  "' is not a regular file. A shard is read at random, which pipes and "
                  "devices do not allow: copy it to a file.",
              {path, {}, {}});
}

FileFacts facts_from(const struct stat& status, const std::string& path, bool version_lasts) {
  refuse_unless_regular(status, path);
#if defined(__APPLE__)
  const auto& mtime = status.st_mtimespec;
  const auto& ctime = status.st_ctimespec;
#else
  const auto& mtime = status.st_mtim;
  const auto& ctime = status.st_ctim;
#endif
  const VersionTag version{{static_cast<std::uint64_t>(status.st_dev),
                            static_cast<std::uint64_t>(status.st_ino),
                            static_cast<std::uint64_t>(nanoseconds(ctime))}};
  return {static_cast<std::uint64_t>(status.st_size),
          nanoseconds(mtime),
          version,
          version_lasts,
          {status.st_uid, status.st_gid, (status.st_mode & S_IWGRP) != 0,
           (status.st_mode & S_IWOTH) != 0}};
}

struct Filesystem {
  bool is_on_network = false;
  bool versions_last = false;
};

#if defined(TFRFAST_LINUX)

void tell_by_type(const struct statfs& filesystem, Filesystem& found) {
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
      found.is_on_network = true;
      break;
    case 0xef53:      // ext2, ext3, ext4
    case 0x58465342:  // XFS
    case 0x9123683e:  // Btrfs
    case 0xf2f52010:  // F2FS
    case 0x2fc12fc1:  // ZFS
    case 0xca451a4e:  // bcachefs
    case 0x3153464a:  // JFS
    case 0x01021994:  // tmpfs: versions end with the mount, and so do the files
      found.versions_last = true;
      break;
    default:  // for example overlayfs
      break;
  }
}

#elif defined(__APPLE__)

void tell_by_type(const struct statfs& filesystem, Filesystem& found) {
  found.is_on_network = (filesystem.f_flags & MNT_LOCAL) == 0;
}

#endif

// Applies the assumption of a test, if any.
Filesystem as_assumed(Filesystem found) {
  const int assumed = assumed_to_last.load(std::memory_order_relaxed);
  if (assumed >= 0) found.versions_last = assumed != 0;
  return found;
}

#if defined(TFRFAST_LINUX) || defined(__APPLE__)

Filesystem filesystem_of(const std::string& path) {
  Filesystem found;
  struct statfs filesystem;
  if (::statfs(path.c_str(), &filesystem) == 0) tell_by_type(filesystem, found);
  return as_assumed(found);
}

Filesystem filesystem_of(int descriptor) {
  Filesystem found;
  struct statfs filesystem;
  if (::fstatfs(descriptor, &filesystem) == 0) tell_by_type(filesystem, found);
  return as_assumed(found);
}

#else

template <class File>
Filesystem filesystem_of(const File&) {
  return as_assumed({});
}

#endif

constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr int kMaxWaits = 100;

std::int64_t time_ns(clockid_t clock) noexcept {
  timespec now = {};
  ::clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * kSecondNs + now.tv_nsec;
}

// The last tick of the clock for file times, or an earlier time.
std::int64_t last_tick_ns() noexcept {
#if defined(TFRFAST_LINUX) && defined(CLOCK_REALTIME_COARSE)
  return time_ns(CLOCK_REALTIME_COARSE);
#else
  constexpr std::int64_t kLongestTickNs = 20'000'000;
  return time_ns(CLOCK_REALTIME) - kLongestTickNs;
#endif
}

}  // namespace

void refuse_unless_regular(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) throw_system_error(errno, "Opening", path);
  refuse_unless_regular(status, path);
}

FileFacts examine_local_file(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) throw_system_error(errno, "Opening", path);
  const Filesystem filesystem = filesystem_of(path);
  return facts_from(status, path, filesystem.versions_last);
}

FileFacts LocalExaminer::examine(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) throw_system_error(errno, "Opening", path);
  const bool last = versions_last(path, static_cast<std::uint64_t>(status.st_dev));
  return facts_from(status, path, last);
}

bool LocalExaminer::versions_last(const std::string& path, std::uint64_t device) {
  const std::size_t folder_bytes = path.rfind('/') + 1;  // 0 for a bare name
  if (!knows_folder_ || path.compare(0, folder_bytes, folder_) != 0) {
    folder_ = path.substr(0, folder_bytes);
    const std::string folder = folder_.empty() ? "." : folder_;
    struct stat status;
    knows_folder_ = ::stat(folder.c_str(), &status) == 0;
    if (knows_folder_) {
      device_ = static_cast<std::uint64_t>(status.st_dev);
      versions_last_ = filesystem_of(folder).versions_last;
    }
  }
  return knows_folder_ && device == device_ ? versions_last_ : filesystem_of(path).versions_last;
}

LocalFacts examine_open_file(int descriptor, const std::string& path) {
  const Filesystem filesystem = filesystem_of(descriptor);
  return {examine_open_file(descriptor, path, filesystem.versions_last), filesystem.is_on_network};
}

FileFacts examine_open_file(int descriptor, const std::string& path, bool version_lasts) {
  struct stat status;
  if (::fstat(descriptor, &status) != 0) throw_system_error(errno, "Inspecting", path);
  return facts_from(status, path, version_lasts);
}

bool is_settled(const FileFacts& facts, std::int64_t now_ns, std::int64_t tick_ns) noexcept {
  // If ctime counts, a modification time in the future was set by hand, and the next change
  // replaces it.
  const bool is_future = facts.mtime_ns > now_ns;
  if (facts.mtime_ns > now_ns - kRecentNs && !(is_future && facts.version_lasts)) return false;
  if (!facts.version_lasts) return true;
  const bool keeps_seconds_only = ctime_ns_of(facts) % kSecondNs == 0;
  return ctime_ns_of(facts) < tick_ns - (keeps_seconds_only ? kRecentNs : 0);
}

bool await_settled(const FileFacts& facts) noexcept {
  for (int waits = 0; facts.version_lasts && waits < kMaxWaits; ++waits) {
    if (last_tick_ns() > ctime_ns_of(facts)) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const std::int64_t tick_ns = last_tick_ns();
  return is_settled(facts, time_ns(CLOCK_REALTIME), tick_ns);
}

void assume_versions_last(std::optional<bool> last) noexcept {
  assumed_to_last.store(last ? *last : -1, std::memory_order_relaxed);
}

}  // namespace tfrfast
