// A file that grows at its end, and is visible meanwhile.
#pragma once

#include <string>

#include "core/storage/local/file_descriptor.h"
#include "core/storage/publication.h"

namespace tfrfast {

// One thread at a time.
class GrowingFile {
 public:
  explicit GrowingFile(std::string path);  // throws Error io

  // Throw Error io, with `advice`.
  void append(ByteView bytes, const std::string& advice = "");
  void close(const std::string& advice = "");

 private:
  const std::string path_;
  FileDescriptor file_;
};

}  // namespace tfrfast
