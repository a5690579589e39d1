// A file in memory with a path, for functions that only open paths.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

inline void require(bool holds) {
  if (!holds) std::abort();
}

class MemoryFile {
 public:
  MemoryFile() : descriptor_(::memfd_create("fuzz", 0)) { require(descriptor_ >= 0); }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  void set(const std::vector<std::uint8_t>& bytes) {
    require(::ftruncate(descriptor_, 0) == 0);
    const auto count = static_cast<ssize_t>(bytes.size());
    require(::pwrite(descriptor_, bytes.data(), bytes.size(), 0) == count);
  }
  void append(const std::uint8_t* bytes, std::size_t count) {
    const off_t end = ::lseek(descriptor_, 0, SEEK_END);
    require(::pwrite(descriptor_, bytes, count, end) == static_cast<ssize_t>(count));
  }
  // Extends the file with zeros, which take no memory.
  void extend_to(std::uint64_t bytes) {
    require(::ftruncate(descriptor_, static_cast<off_t>(bytes)) == 0);
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};
