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

}  // namespace

bool peek(const std::string& path, void* bytes, std::size_t count) noexcept {
  int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
#if defined(TFRFAST_LINUX) && defined(O_NOATIME)
  flags |= O_NOATIME;
#endif
  const ClosedAtEnd file{::open(path.c_str(), flags)};
  struct stat status;
  return file.descriptor >= 0 && ::fstat(file.descriptor, &status) == 0 &&
         S_ISREG(status.st_mode) && read_beginning(file.descriptor, bytes, count);
}

bool change_beginning(const std::string& path, void* bytes, std::size_t count,
                      const std::function<bool()>& change) {
  const ClosedAtEnd file{::open(path.c_str(), O_RDWR | O_CLOEXEC)};
  return file.descriptor >= 0 && read_beginning(file.descriptor, bytes, count) && change() &&
         ::pwrite(file.descriptor, bytes, count, 0) == static_cast<ssize_t>(count);
}

void cut_file(const std::string& path, std::uint64_t bytes) {
  if (::truncate(path.c_str(), static_cast<off_t>(bytes)) != 0) {
    throw_system_error(errno, "Cutting", path);
  }
}

}  // namespace tfrfast
