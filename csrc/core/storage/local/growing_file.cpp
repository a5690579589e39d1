#include "core/storage/local/growing_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/base/error.h"
#include "core/storage/local/place.h"

namespace tfrfast {

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

}  // namespace tfrfast
