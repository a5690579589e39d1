#include "core/storage/local/in_place.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/base/error.h"
#include "core/base/platform.h"
#include "core/storage/local/place.h"

namespace tfrfast {
namespace {

bool read_beginning(int descriptor, void* bytes, std::size_t count) noexcept {
  return ::pread(descriptor, bytes, count, 0) == static_cast<ssize_t>(count);
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

bool peek(const std::string& path, void* bytes, std::size_t count) noexcept {
  int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
#if defined(TFRFAST_LINUX)
  flags |= O_NOATIME;
#endif
  const FileDescriptor file(::open(path.c_str(), flags));
  struct stat status;
  const bool has_them = ::fstat(file.number(), &status) == 0 && S_ISREG(status.st_mode) &&
                        read_beginning(file.number(), bytes, count);
#if !defined(TFRFAST_LINUX)
  if (has_them) set_last_use_back(file.number(), status);
#endif
  return has_them;
}

FileInPlace::FileInPlace(std::string path)
    : path_(std::move(path)),
      file_(::open(path_.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)) {
  if (file_.number() < 0) throw_system_error(errno, "Opening", path_);
  struct stat status;
  if (::fstat(file_.number(), &status) != 0) throw_system_error(errno, "Examining", path_);
  if (S_ISREG(status.st_mode)) return;
  throw Error(ErrorKind::invalid, "'" + path_ + "' is not a regular file.", {path_, {}, {}});
}

std::uint64_t FileInPlace::bytes() const {
  struct stat status;
  if (::fstat(file_.get(), &status) != 0) throw_system_error(errno, "Examining", path_);
  return static_cast<std::uint64_t>(status.st_size);
}

bool FileInPlace::read(std::uint64_t at, void* bytes, std::size_t count) const {
  auto* to = static_cast<std::uint8_t*>(bytes);
  while (count > 0) {
    const ssize_t found = ::pread(file_.get(), to, count, static_cast<off_t>(at));
    if (found < 0 && errno == EINTR) continue;
    if (found < 0) throw_system_error(errno, "Reading", path_);
    if (found == 0) return false;
    to += found, at += static_cast<std::uint64_t>(found), count -= static_cast<std::size_t>(found);
  }
  return true;
}

void FileInPlace::write(std::uint64_t at, const void* bytes, std::size_t count) {
  const auto* from = static_cast<const std::uint8_t*>(bytes);
  while (count > 0) {
    const ssize_t written = ::pwrite(file_.get(), from, count, static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_system_error(errno, "Writing", path_);
    from += written, at += static_cast<std::uint64_t>(written);
    count -= static_cast<std::size_t>(written);
  }
}

void FileInPlace::cut(std::uint64_t bytes) {
  if (::ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0) {
    throw_system_error(errno, "Cutting", path_);
  }
}

void FileInPlace::flush() {
  if (::fsync(file_.get()) != 0) throw_system_error(errno, "Flushing", path_);
}

GrowingFile::GrowingFile(std::string path) : path_(std::move(path)) {
  refuse_planted_link(path_);
  file_ = FileDescriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND, 0666));
  if (file_.number() < 0) throw_system_error(errno, "Opening", path_);
}

void GrowingFile::append(ByteView bytes, const std::string& advice) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_system_error(errno, "Writing", path_, advice);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void GrowingFile::close(const std::string& advice) {
  if (const int failed = file_.close(); failed != 0) {
    throw_system_error(failed, "Closing", path_, advice);
  }
}

void cut_file(const std::string& path, std::uint64_t bytes) {
  if (::truncate(path.c_str(), static_cast<off_t>(bytes)) != 0) {
    throw_system_error(errno, "Cutting", path);
  }
}

}  // namespace tfrfast
