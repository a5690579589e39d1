#include "core/storage/local/growing_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/base/error.h"
#include "core/storage/local/place.h"

namespace tfrfast {

GrowingFile::GrowingFile(std::string path, Begin begin) : path_(std::move(path)) {
  refuse_planted_link(path_);
  const int flags = begin == Begin::empty ? O_TRUNC : O_APPEND;
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666);
  if (descriptor_ < 0) {
    throw_system_error(errno, begin == Begin::empty ? "Creating" : "Opening", path_);
  }
}

GrowingFile::~GrowingFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void GrowingFile::append(ByteView bytes, const std::string& advice) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_system_error(errno, "Writing", path_, advice);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void GrowingFile::close(const std::string& advice) {
  const int closing = std::exchange(descriptor_, -1);
  if (closing >= 0 && ::close(closing) != 0) throw_system_error(errno, "Closing", path_, advice);
}

}  // namespace tfrfast
