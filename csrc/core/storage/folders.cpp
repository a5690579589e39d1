#include "core/storage/folders.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/error.h"

namespace tfrfast {

void flush_folder(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) throw_system_error(errno, "Opening folder", folder);
  const int failed = ::fsync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  // Some network filesystems cannot flush a folder; they have no later moment to offer either.
  if (failed != 0 && failed != EINVAL && failed != ENOTSUP) {
    throw_system_error(failed, "Flushing folder", folder);
  }
}

void make_folders(const std::string& folder, unsigned mode) {
  if (folder.empty() || ::mkdir(folder.c_str(), mode) == 0) return;
  int failed = errno;
  const std::string parent = folder_of(folder);
  if (failed == ENOENT && parent != folder) {
    make_folders(parent, mode);
    failed = ::mkdir(folder.c_str(), mode) == 0 ? 0 : errno;
  }
  if (failed == 0) return;
  if (failed != EEXIST) throw_system_error(failed, "Making folder", folder);
  struct stat status;
  if (::stat(folder.c_str(), &status) == 0 && !S_ISDIR(status.st_mode)) {
    throw_system_error(ENOTDIR, "Making folder", folder,
                       "A file has that name: move it, or use another folder.");
  }
}

std::string folder_of(const std::string& path) {
  const auto slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  const auto last = path.find_last_not_of('/', slash);  // "a//b" lies in "a"
  return last == std::string::npos ? "/" : path.substr(0, last + 1);
}

std::string name_of(const std::string& path) {
  const auto slash = path.find_last_of('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

}  // namespace tfrfast
