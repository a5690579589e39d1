// A local file that is changed in place rather than replaced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/storage/local/file_descriptor.h"

namespace tfrfast {

// A regular file, open for reading and writing. Others see each change at once. One thread at a
// time.
class WritableFile {
 public:
  enum class IfMissing : std::uint8_t { fail, make };
  // Follows no link and never waits. `advice` ends every Error io. Throws Error io, and invalid for
  // anything but a regular file.
  explicit WritableFile(std::string path, IfMissing if_missing = IfMissing::fail,
                        std::string advice = "");

  std::uint64_t bytes() const;  // throws Error io, as do the functions below
  // False if the file ends before the last byte.
  bool read(std::uint64_t at, void* bytes, std::size_t count) const;
  void write(std::uint64_t at, const void* bytes, std::size_t count);
  void append(std::span<const std::uint8_t> bytes) {
    write(this->bytes(), bytes.data(), bytes.size());
  }
  void cut(std::uint64_t bytes);
  void flush();  // to the disk
  void close();

 private:
  [[noreturn]] void fail(int system_error, const char* action) const;

  const std::string path_;
  const std::string advice_;
  FileDescriptor file_;
};

}  // namespace tfrfast
