// A file that is visible while it is written.
#pragma once

#include <string>

#include "core/storage/local/file_descriptor.h"
#include "core/storage/publication.h"

namespace tfrfast {

// Any local file that can be written in order, for example a pipe. One thread at a time.
class GrowingFile {
 public:
  enum class Begin : bool { empty, at_end };
  GrowingFile(std::string path, Begin begin);  // throws Error io

  const std::string& path() const noexcept { return path_; }
  bool is_open() const noexcept { return file_.number() >= 0; }

  // Throw Error io, with `advice`.
  void append(ByteView bytes, const std::string& advice = "");
  void close(const std::string& advice = "");

 private:
  const std::string path_;
  FileDescriptor file_;
};

}  // namespace tfrfast
