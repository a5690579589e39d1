// Local files that are examined, cut, extended or changed in place rather than replaced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/storage/local/file_descriptor.h"
#include "core/storage/publication.h"

namespace tfrfast {

// Reads the first bytes of a regular file. False if the file is shorter, or the path is a link.
// Does not change the file's time of last use.
bool peek(const std::string& path, void* bytes, std::size_t count) noexcept;

// A regular file, open for reading and writing. One thread at a time.
class FileInPlace {
 public:
  // Follows no link and never waits. Throws Error io, and invalid for anything but a regular file.
  explicit FileInPlace(std::string path);

  std::uint64_t bytes() const;  // throws Error io, as do the functions below
  // False if the file ends before the last byte.
  bool read(std::uint64_t at, void* bytes, std::size_t count) const;
  void write(std::uint64_t at, const void* bytes, std::size_t count);
  void cut(std::uint64_t bytes);
  void flush();  // to the disk

 private:
  const std::string path_;
  const FileDescriptor file_;
};

// A file that grows at its end, and is visible meanwhile. One thread at a time.
class GrowingFile {
 public:
  explicit GrowingFile(std::string path);  // makes the file if necessary; throws Error io

  // Throw Error io, with `advice`.
  void append(ByteView bytes, const std::string& advice = "");
  void close(const std::string& advice = "");

 private:
  const std::string path_;
  FileDescriptor file_;
};

void cut_file(const std::string& path, std::uint64_t bytes);  // throws Error io

}  // namespace tfrfast
