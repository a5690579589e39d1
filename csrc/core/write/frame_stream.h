// Appends records to a file that is visible while it is written.
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

// One thread and one process at a time: a forked child cannot write, so no buffered bytes are
// written twice. After a failure, the file ends inside a frame, and no later frame could be found.
// So every later call but close() throws the same Error again. Unlike a ShardWriter, this class
// creates or empties the file at once. The file may be anything that is written in order, for
// example a pipe.
class FrameStream {
 public:
  explicit FrameStream(std::string path);  // throws Error io
  ~FrameStream();                          // closes the file; reports no error
  FrameStream(const FrameStream&) = delete;
  FrameStream& operator=(const FrameStream&) = delete;

  // All throw Error io.
  void write(std::span<const std::uint8_t> payload);
  void flush();  // hands the bytes to the operating system, so that others see them
  void close();

  bool has_space(std::size_t payload_bytes) const noexcept {
    return buffer_.has_space(payload_bytes);
  }

 private:
  void write_all(std::span<const std::uint8_t> bytes);

  GrowingFile file_;
  const HomeProcess home_;
  std::optional<Error> failure_;
  FrameBuffer buffer_;
};

}  // namespace tfrfast
