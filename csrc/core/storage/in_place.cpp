#include "core/storage/in_place.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/error.h"
#include "core/base/platform.h"

namespace tfrfast {
namespace {

struct ClosedAtEnd {
  ~ClosedAtEnd() {
    if (descriptor >= 0) ::close(descriptor);
  }
  const int descriptor;
};

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
  const ClosedAtEnd file{::open(path.c_str(), flags)};
  struct stat status;
  const bool has_them = file.descriptor >= 0 && ::fstat(file.descriptor, &status) == 0 &&
                        S_ISREG(status.st_mode) && read_beginning(file.descriptor, bytes, count);
#if !defined(TFRFAST_LINUX)
  if (has_them) set_last_use_back(file.descriptor, status);
#endif
  return has_them;
}

bool change_beginning(const std::string& path, void* bytes, std::size_t count,
                      const std::function<bool()>& change) {
  const ClosedAtEnd file{::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)};
  return file.descriptor >= 0 && read_beginning(file.descriptor, bytes, count) && change() &&
         ::pwrite(file.descriptor, bytes, count, 0) == static_cast<ssize_t>(count);
}

void cut_file(const std::string& path, std::uint64_t bytes) {
  if (::truncate(path.c_str(), static_cast<off_t>(bytes)) != 0) {
    throw_system_error(errno, "Cutting", path);
  }
}

}  // namespace tfrfast
