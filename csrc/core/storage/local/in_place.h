// Files of this machine that are examined, cut or changed in place rather than replaced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tfrfast {

// The first bytes of a regular file, if it has that many. A link does not count as one. The file's
// time of last use stays what it was.
bool peek(const std::string& path, void* bytes, std::size_t count) noexcept;

// A regular file that is open to be read and written. One thread at a time.
class FileInPlace {
 public:
  // Neither follows a link nor waits for anything. Throws Error io, and invalid if it is not a
  // regular file.
  explicit FileInPlace(std::string path);
  ~FileInPlace();
  FileInPlace(const FileInPlace&) = delete;
  FileInPlace& operator=(const FileInPlace&) = delete;

  std::uint64_t bytes() const;  // throws Error io, as do all others
  // False if the file ends before.
  bool read(std::uint64_t at, void* bytes, std::size_t count) const;
  void write(std::uint64_t at, const void* bytes, std::size_t count);
  void cut(std::uint64_t bytes);
  void flush();  // to the disk

 private:
  const std::string path_;
  const int descriptor_;
};

void cut_file(const std::string& path, std::uint64_t bytes);  // throws Error io

}  // namespace tfrfast
