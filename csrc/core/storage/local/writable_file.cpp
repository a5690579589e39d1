#include "core/storage/local/writable_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/base/error.h"

namespace tfrfast {

WritableFile::WritableFile(std::string path, IfMissing if_missing, std::string advice)
    : path_(std::move(path)), advice_(std::move(advice)) {
  const int makes = if_missing == IfMissing::make ? O_CREAT : 0;
  file_ = FileDescriptor(
      ::open(path_.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | makes, 0666));
  if (file_.number() < 0) fail(errno, "Opening");
  struct stat status;
  if (::fstat(file_.number(), &status) != 0) fail(errno, "Examining");
  if (S_ISREG(status.st_mode)) return;
  throw Error(ErrorKind::invalid, "'" + path_ + "' is not a regular file.", {path_, {}, {}});
}

void WritableFile::fail(int system_error, const char* action) const {
  throw_system_error(system_error, action, path_, advice_);
}

std::uint64_t WritableFile::bytes() const {
  struct stat status;
  if (::fstat(file_.get(), &status) != 0) fail(errno, "Examining");
  return static_cast<std::uint64_t>(status.st_size);
}

bool WritableFile::read(std::uint64_t at, void* bytes, std::size_t count) const {
  auto* to = static_cast<std::uint8_t*>(bytes);
  while (count > 0) {
    const ssize_t found = ::pread(file_.get(), to, count, static_cast<off_t>(at));
    if (found < 0 && errno == EINTR) continue;
    if (found < 0) fail(errno, "Reading");
    if (found == 0) return false;
    to += found, at += static_cast<std::uint64_t>(found), count -= static_cast<std::size_t>(found);
  }
  return true;
}

void WritableFile::write(std::uint64_t at, const void* bytes, std::size_t count) {
  if (const int failed = write_at(file_.get(), at, bytes, count); failed != 0) {
    fail(failed, "Writing");
  }
}

void WritableFile::cut(std::uint64_t bytes) {
  if (::ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0) fail(errno, "Cutting");
}

void WritableFile::flush() {
  if (::fsync(file_.get()) != 0) fail(errno, "Flushing");
}

void WritableFile::close() {
  if (const int failed = file_.close(); failed != 0) fail(failed, "Closing");
}

}  // namespace tfrfast
