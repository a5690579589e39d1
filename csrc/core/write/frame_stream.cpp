#include "core/write/frame_stream.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace tfrfast {
namespace {

constexpr std::size_t kBufferBytes = 256 << 10;

}  // namespace

FrameStream::FrameStream(std::string path) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw_system_error(errno, "Creating", path_);
  buffer_.allocate(kBufferBytes);
}

FrameStream::~FrameStream() {
  if (descriptor_ < 0) return;
  try {
    if (home_.is_this_one()) flush();
  } catch (const Error&) {
    // Whoever wants to know calls close().
  }
  ::close(descriptor_);
}

void FrameStream::write(std::span<const std::uint8_t> payload) {
  if (failure_) throw Error(*failure_);
  if (!buffer_.has_room(payload.size())) flush();
  if (buffer_.has_room(payload.size())) {
    buffer_.put_frame(payload);
    return;
  }
  std::uint8_t footer[kFooterBytes];
  encode_footer(masked_crc32c(payload.data(), payload.size()), footer);
  buffer_.put_header(payload.size());
  flush();
  write_all(payload);
  write_all(footer);
}

void FrameStream::flush() {
  if (failure_) throw Error(*failure_);
  write_all(buffer_.bytes());
  buffer_.clear();
}

void FrameStream::close() {
  if (descriptor_ < 0) return;
  if (!failure_) flush();
  const int closing = std::exchange(descriptor_, -1);
  buffer_.release();
  if (::close(closing) != 0 && !failure_) throw_system_error(errno, "Closing", path_);
}

void FrameStream::write_all(std::span<const std::uint8_t> bytes) {
  try {
    home_.refuse_in_child(path_);
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) throw_system_error(errno, "Writing", path_);
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
  } catch (const Error& error) {
    failure_ = error;
    throw;
  }
}

}  // namespace tfrfast
