// Records appended to a file that is seen while it is written.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/base/error.h"
#include "core/base/process.h"
#include "core/storage/local/growing_file.h"
#include "core/write/frame_buffer.h"

namespace tfrfast {

// One thread and one process at a time: a forked child cannot write, so what was buffered is not
// written twice. After a failure the file ends in part of a frame, and frames after it could not be
// found again. So every call but close() repeats that Error. Unlike a ShardWriter, this makes the
// file at once and drops what was in it. Any file that can be written in order will do, a pipe for
// example.
class FrameStream {
 public:
  explicit FrameStream(std::string path);  // throws Error io
  ~FrameStream();                          // closes; an error is not reported
  FrameStream(const FrameStream&) = delete;
  FrameStream& operator=(const FrameStream&) = delete;

  // All throw Error io.
  void write(std::span<const std::uint8_t> payload);
  void flush();  // to the operating system, where others see it
  void close();

  bool has_room(std::size_t payload_bytes) const noexcept {
    return buffer_.has_room(payload_bytes);
  }

 private:
  void write_all(std::span<const std::uint8_t> bytes);

  GrowingFile file_;
  const HomeProcess home_;
  std::optional<Error> failure_;
  FrameBuffer buffer_;
};

}  // namespace tfrfast
