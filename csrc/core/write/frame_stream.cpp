#include "core/write/frame_stream.h"

#include <algorithm>
#include <utility>

namespace tfrfast {
namespace {

constexpr std::size_t kBufferBytes = 256 << 10;

}  // namespace

FrameStream::FrameStream(std::string path) : file_(std::move(path), GrowingFile::Begin::empty) {
  buffer_.allocate(kBufferBytes);
}

FrameStream::~FrameStream() {
  if (!file_.is_open()) return;
  try {
    if (home_.is_this_one()) flush();
  } catch (const Error&) {
    // Only close() reports errors.
  }
}

void FrameStream::write(std::span<const std::uint8_t> payload) {
  if (failure_) throw Error(*failure_);
  if (!buffer_.has_space(payload.size())) flush();
  if (buffer_.has_space(payload.size())) {
    buffer_.put_frame(payload);
    return;
  }
  // Another thread may change the payload, so the checksum is of the copies that are written.
  buffer_.put_header(payload.size());
  flush();
  const PooledBuffer copy(kBufferBytes);
  std::uint32_t crc = 0;
  while (!payload.empty()) {
    const std::size_t bytes = std::min(payload.size(), kBufferBytes);
    crc = copy_crc32c(copy.data(), payload.data(), bytes, crc);
    write_all({copy.data(), bytes});
    payload = payload.subspan(bytes);
  }
  std::uint8_t footer[kFooterBytes];
  encode_footer(mask_crc(crc), footer);
  write_all(footer);
}

void FrameStream::flush() {
  if (failure_) throw Error(*failure_);
  write_all(buffer_.bytes());
  buffer_.clear();
}

void FrameStream::close() {
  if (!file_.is_open()) return;
  if (!failure_) flush();
  buffer_.release();
  try {
    file_.close();
  } catch (const Error&) {
    if (!failure_) throw;  // otherwise an earlier Error has reported the incomplete file
  }
}

void FrameStream::write_all(std::span<const std::uint8_t> bytes) {
  try {
    home_.refuse_in_child(file_.path());
    file_.append(bytes);
  } catch (const Error& error) {
    failure_ = error;
    throw;
  }
}

}  // namespace tfrfast
