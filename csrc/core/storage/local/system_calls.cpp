#include "core/storage/local/system_calls.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <limits>
#include <thread>

#include "core/base/platform.h"
#include "core/storage/local/local_file.h"

#if defined(TFRFAST_LINUX)
#include <linux/magic.h>
#include <sys/vfs.h>
#endif

namespace tfrfast {
namespace {

// The kernel reads ahead at most this much per call.
constexpr std::uint64_t kAdviceBytes = 128 << 10;

// Calls advise(begin, bytes) for pieces of the range. The length is limited, because the range may
// come from a damaged header.
template <class Advise>
void advise_in_pieces(std::uint64_t offset, std::uint64_t bytes, const Advise& advise) {
  const std::uint64_t end = offset + std::min(bytes, kLocalTraits.max_announced_bytes);
  for (; offset < end; offset += kAdviceBytes) advise(offset, std::min(kAdviceBytes, end - offset));
}

}  // namespace

#if defined(TFRFAST_LINUX)

namespace {

// The only way without privileges to give an unnamed file a name.
std::string descriptor_path(int descriptor) {
  return "/proc/self/fd/" + std::to_string(descriptor);
}

}  // namespace

int open_unnamed(const std::string& folder) noexcept {
  const int descriptor = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (descriptor >= 0 && ::access(descriptor_path(descriptor).c_str(), F_OK) != 0) {
    ::close(descriptor);  // without /proc the file could never get a name
    return -1;
  }
  return descriptor;
}

int give_name(int descriptor, const std::string& path) noexcept {
  return ::linkat(AT_FDCWD, descriptor_path(descriptor).c_str(), AT_FDCWD, path.c_str(),
                  AT_SYMLINK_FOLLOW);
}

bool reserve_space(int descriptor, std::uint64_t offset, std::uint64_t bytes) noexcept {
  struct statfs filesystem;
  // On tmpfs, reserving space would only fill memory with zeros, without a gain.
  return ::fstatfs(descriptor, &filesystem) == 0 && filesystem.f_type != TMPFS_MAGIC &&
         ::fallocate(descriptor, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                     static_cast<off_t>(bytes)) == 0;
}

void start_flushing(int descriptor, std::uint64_t offset, std::uint64_t bytes) noexcept {
  ::sync_file_range(descriptor, static_cast<off_t>(offset), static_cast<off_t>(bytes),
                    SYNC_FILE_RANGE_WRITE);
}

std::uint64_t data_in_file(int descriptor, std::uint64_t offset) noexcept {
  const off_t data = ::lseek(descriptor, static_cast<off_t>(offset), SEEK_DATA);
  if (data >= 0) return static_cast<std::uint64_t>(data);
  return errno == ENXIO ? std::numeric_limits<std::uint64_t>::max() : offset;
}

std::optional<bool> cached_in_file(int descriptor, std::uint64_t offset) noexcept {
  std::uint8_t byte;
  const iovec piece{&byte, 1};
  if (::preadv2(descriptor, &piece, 1, static_cast<off_t>(offset), RWF_NOWAIT) >= 0) return true;
  if (errno == EAGAIN) return false;
  return {};
}

#else

int open_unnamed(const std::string&) noexcept {
  return -1;
}

int give_name(int, const std::string&) noexcept {
  return errno = ENOTSUP, -1;
}

bool reserve_space(int, std::uint64_t, std::uint64_t) noexcept {
  return false;
}

void start_flushing(int, std::uint64_t, std::uint64_t) noexcept {}

std::uint64_t data_in_file(int, std::uint64_t offset) noexcept {
  return offset;
}

std::optional<bool> cached_in_file(int, std::uint64_t) noexcept {
  return {};
}

#endif

int lock_within(int descriptor, OpenLock how, int max_wait_ms) noexcept {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds kMaxPause(50'000);
  const Clock::time_point until = Clock::now() + std::chrono::milliseconds(max_wait_ms);
  std::chrono::microseconds pause(300);
  while (::flock(descriptor, (how == OpenLock::alone ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK || Clock::now() >= until) return errno;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kMaxPause);
  }
  return 0;
}

void unlock(int descriptor) noexcept {
  ::flock(descriptor, LOCK_UN);
}

int rename_to_free_name(const std::string& from, const std::string& to) noexcept {
#if defined(TFRFAST_LINUX)
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP) return -1;
#endif
  if (::link(from.c_str(), to.c_str()) == 0) {
    ::unlink(from.c_str());
    return 0;
  }
  if (errno == EEXIST || (errno != EPERM && errno != ENOSYS && errno != ENOTSUP)) return -1;
  struct stat status;
  if (::lstat(to.c_str(), &status) == 0) return errno = EEXIST, -1;
  return ::rename(from.c_str(), to.c_str());
}

void advise_mapping(void* mapping, std::uint64_t offset, std::uint64_t bytes) noexcept {
  constexpr std::uint64_t kPage = 4096;
  const std::uint64_t before = offset % kPage;
  advise_in_pieces(offset - before, bytes + before, [&](std::uint64_t begin, std::uint64_t count) {
    ::posix_madvise(static_cast<std::uint8_t*>(mapping) + begin, count, POSIX_MADV_WILLNEED);
  });
}

void advise_file(int descriptor, std::uint64_t offset, std::uint64_t bytes) noexcept {
#if defined(POSIX_FADV_WILLNEED)  // macOS has none
  advise_in_pieces(offset, bytes, [=](std::uint64_t begin, std::uint64_t count) {
    ::posix_fadvise(descriptor, static_cast<off_t>(begin), static_cast<off_t>(count),
                    POSIX_FADV_WILLNEED);
  });
#else
  (void)descriptor, (void)offset, (void)bytes;
#endif
}

}  // namespace tfrfast
