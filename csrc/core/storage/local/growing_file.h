// A file that others see while it is written.
#pragma once

#include <string>

#include "core/storage/publication.h"

namespace tfrfast {

// Any file of this machine that can be written in order, a pipe for example. One thread at a time.
class GrowingFile {
 public:
  enum class Begin : bool { empty, at_end };
  GrowingFile(std::string path, Begin begin);  // throws Error io
  ~GrowingFile();                              // closes
  GrowingFile(const GrowingFile&) = delete;
  GrowingFile& operator=(const GrowingFile&) = delete;

  const std::string& path() const noexcept { return path_; }
  bool is_open() const noexcept { return descriptor_ >= 0; }

  // Both throw Error io, with `advice`.
  void append(ByteView bytes, const std::string& advice = "");
  void close(const std::string& advice = "");

 private:
  const std::string path_;
  int descriptor_;
};

}  // namespace tfrfast
