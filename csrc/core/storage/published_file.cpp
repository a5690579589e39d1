#include "core/storage/published_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "core/base/error.h"
#include "core/storage/folders.h"
#include "core/storage/permissions.h"
#include "core/storage/temporary.h"

namespace tfrfast {
namespace {

constexpr std::uint64_t kLeastReservedBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kFlushedPieceBytes = std::uint64_t{8} << 20;

// The only way for everyone to name a file that has no name.
std::string descriptor_path(int descriptor) {
  return "/proc/self/fd/" + std::to_string(descriptor);
}

int give_name(int descriptor, const std::string& path) noexcept {
  return ::linkat(AT_FDCWD, descriptor_path(descriptor).c_str(), AT_FDCWD, path.c_str(),
                  AT_SYMLINK_FOLLOW);
}

int open_unnamed(const std::string& folder) {
#ifdef O_TMPFILE
  const int descriptor = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (descriptor >= 0 && ::access(descriptor_path(descriptor).c_str(), F_OK) != 0) {
    ::close(descriptor);  // without /proc it would never get a name
    return -1;
  }
  return descriptor;
#else
  return -1;
#endif
}

// rename() that leaves what is there.
int rename_to_free_name(const std::string& from, const std::string& to) {
#ifdef RENAME_NOREPLACE
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP) return -1;
#endif
  if (::link(from.c_str(), to.c_str()) == 0) {
    ::unlink(from.c_str());
    return 0;
  }
  if (errno == EEXIST || (errno != EPERM && errno != ENOSYS && errno != ENOTSUP)) return -1;
  // A filesystem that has neither: looking first is the best there is.
  struct stat status;
  if (::lstat(to.c_str(), &status) == 0) return errno = EEXIST, -1;
  return ::rename(from.c_str(), to.c_str());
}

int rename_to(const std::string& from, const std::string& to, Existing existing) {
  return existing == Existing::keep ? rename_to_free_name(from, to)
                                    : ::rename(from.c_str(), to.c_str());
}

struct OwnDescriptor {
  ~OwnDescriptor() { ::close(descriptor); }
  int descriptor;
};

std::string unchanged(const std::string& path) {
  return "Nothing was published: '" + path + "' is as it was before.";
}

}  // namespace

PublishedFile::PublishedFile(std::string path) : path_(std::move(path)) {
  remove_abandoned(folder_of(path_));
  descriptor_ = open_unnamed(folder_of(path_));
  if (descriptor_ >= 0) return;
  temporary_path_ = temporary_name(folder_of(path_));
  descriptor_ = ::open(temporary_path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw_system_error(errno, "Creating a file for", path_);
}

void PublishedFile::keep_temporary_in(std::string folder) {
  remove_abandoned(folder);
  temporary_folder_ = std::move(folder);
}

void PublishedFile::keep_permissions() {
  keeps_permissions_ = true;
  restrict_permissions(descriptor_, path_);
}

PublishedFile::~PublishedFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (has_name() && !committed_ && home_.is_this_one()) ::unlink(temporary_path_.c_str());
}

void PublishedFile::append(const void* bytes, std::size_t count) {
  write_at(appended_bytes_, bytes, count);
  appended_bytes_ += count;
}

void PublishedFile::append(iovec* pieces, int count) {
  std::uint64_t end = appended_bytes_;
  for (int piece = 0; piece < count; ++piece) end += pieces[piece].iov_len;
  open_again();
  if (end > reserved_bytes_) reserve(end);
  write_all(appended_bytes_, pieces, count);
  appended_bytes_ = end;
  if (flushes_behind_ && end - flushing_bytes_ >= kFlushedPieceBytes) start_flushing();
}

void PublishedFile::reserve(std::uint64_t end) noexcept {
  const std::uint64_t piece = std::min(most_reserved_bytes_, appended_bytes_);
  if (piece < kLeastReservedBytes || end - appended_bytes_ > piece) return;
  struct statfs filesystem;
  // Space in memory would be cleared first, for nothing.
  if (::fstatfs(descriptor_, &filesystem) == 0 && filesystem.f_type != TMPFS_MAGIC &&
      ::fallocate(descriptor_, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(appended_bytes_),
                  static_cast<off_t>(piece)) == 0) {
    reserved_bytes_ = appended_bytes_ + piece;
  } else {
    most_reserved_bytes_ = 0;  // not this filesystem, or not enough space to be generous with
  }
}

void PublishedFile::start_flushing() noexcept {
  // A hint: what fails here fails again, and is told, when the whole file is flushed.
  ::sync_file_range(descriptor_, static_cast<off_t>(flushing_bytes_),
                    static_cast<off_t>(appended_bytes_ - flushing_bytes_), SYNC_FILE_RANGE_WRITE);
  flushing_bytes_ = appended_bytes_;
}

void PublishedFile::give_back_space() noexcept {
  if (reserved_bytes_ <= appended_bytes_) return;
  if (::ftruncate(descriptor_, static_cast<off_t>(appended_bytes_)) == 0) reserved_bytes_ = 0;
}

void PublishedFile::write_at(std::uint64_t offset, const void* bytes, std::size_t count) {
  iovec piece{const_cast<void*>(bytes), count};
  write_all(offset, &piece, 1);
}

void PublishedFile::write_all(std::uint64_t offset, iovec* pieces, int count) {
  open_again();
  while (count > 0) {
    if (pieces->iov_len == 0) {
      ++pieces, --count;
      continue;
    }
    const ssize_t written = ::pwritev(descriptor_, pieces, count, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_system_error(errno, "Writing", path_, unchanged(path_));
    offset += static_cast<std::uint64_t>(written);
    for (auto left = static_cast<std::size_t>(written); left > 0;) {
      const std::size_t taken = std::min(left, pieces->iov_len);
      pieces->iov_base = static_cast<char*>(pieces->iov_base) + taken;
      pieces->iov_len -= taken;
      left -= taken;
      if (pieces->iov_len == 0) ++pieces, --count;
    }
  }
}

bool PublishedFile::set_back(std::int64_t* modified_ns) {
  open_again();
  give_back_space();
  const auto examine = [this] {
    struct stat status;
    if (::fstat(descriptor_, &status) != 0) throw_system_error(errno, "Examining", path_);
    return status.st_mtim;
  };
  const timespec written = examine();
  timespec earlier = written;
  if (earlier.tv_nsec > 0) {
    earlier.tv_nsec -= 1;
  } else {
    earlier.tv_sec -= 1, earlier.tv_nsec = 999'999'999;
  }
  const timespec times[2] = {{0, UTIME_OMIT}, earlier};
  const bool was_set = ::futimens(descriptor_, times) == 0;
  const timespec kept = was_set ? examine() : written;
  *modified_ns = std::int64_t{kept.tv_sec} * 1'000'000'000 + kept.tv_nsec;
  return kept.tv_sec < written.tv_sec ||
         (kept.tv_sec == written.tv_sec && kept.tv_nsec < written.tv_nsec);
}

void PublishedFile::flush() {
  open_again();
  give_back_space();
  if (::fsync(descriptor_) != 0) throw_system_error(errno, "Flushing", path_, unchanged(path_));
}

void PublishedFile::park() {
  home_.refuse_in_child(path_);
  if (descriptor_ < 0) return;
  if (!has_name()) take_temporary_name();
  const int closing = descriptor_;
  descriptor_ = -1;
  if (::close(closing) != 0) throw_system_error(errno, "Closing", path_, unchanged(path_));
}

void PublishedFile::take_temporary_name() {
  for (const std::string& folder : {temporary_folder_, folder_of(path_)}) {
    if (folder.empty()) continue;
    std::string name = temporary_name(folder);
    if (give_name(descriptor_, name) == 0) {
      temporary_path_ = std::move(name);
      return;
    }
  }
  throw_system_error(errno, "Naming a file for", path_);
}

void PublishedFile::open_again() {
  home_.refuse_in_child(path_);
  if (descriptor_ >= 0) return;
  descriptor_ = ::open(temporary_path_.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor_ < 0) throw_system_error(errno, "Opening a file for", path_, unchanged(path_));
}

void PublishedFile::take_name(Existing existing) {
  if (!has_name()) {
    if (give_name(descriptor_, path_) == 0) return;
    if (errno != EEXIST || existing == Existing::keep) {
      throw_system_error(errno, "Publishing", path_, unchanged(path_));
    }
  }
  park();  // a network filesystem may say only at closing that it could not store the bytes
  if (rename_to(temporary_path_, path_, existing) != 0) {
    throw_system_error(errno, "Publishing", path_, unchanged(path_));
  }
}

void PublishedFile::commit(bool durable, Existing existing) {
  home_.refuse_in_child(path_);
  if (keeps_permissions_ && ::access(path_.c_str(), F_OK) == 0) {
    open_again();
    take_permissions(descriptor_, path_);
  }
  if (descriptor_ >= 0) give_back_space();
  if (durable) flush();
  take_name(existing);
  committed_ = true;
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
  if (durable) flush_folder(folder_of(path_));
}

void move_file(const std::string& from, const std::string& to, Existing existing) {
  const int moved = existing == Existing::replace ? ::open(from.c_str(), O_RDONLY | O_CLOEXEC) : -1;
  if (moved >= 0) {
    const OwnDescriptor closing{moved};
    take_permissions(moved, to);
  }
  if (rename_to(from, to, existing) != 0)
    throw_system_error(errno, "Publishing", to, unchanged(to));
}

}  // namespace tfrfast
