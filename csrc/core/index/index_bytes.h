// The bytes of an index, in memory or mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/storage/stored_file.h"

namespace tfrfast {

// Says why the index file at `path` is not used, and what to do. Throws Error stale_index.
[[noreturn]] void refuse_index(const std::string& path, const std::string& what);

// The sections of one shard, inside the file of a folder's index. They count from their own
// beginning. They stay where they are if the file is mapped, else they are read.
class IndexBytes {
 public:
  // Throws Error io and stale_index.
  IndexBytes(std::shared_ptr<const StoredFile> file, std::uint64_t begin, std::uint64_t bytes);

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  const std::uint8_t* at(std::uint64_t offset) const { return bytes_ + offset; }

  // Whether there can be a section with `count` values from `offset`.
  template <class T>
  bool holds(std::uint64_t offset, std::uint64_t count) const {
    return offset % alignof(T) == 0 && offset <= size() && count <= (size() - offset) / sizeof(T);
  }

  // A copy of `count` values from `offset`, which the caller knows to lie inside. Throws Error io
  // if they cannot be read, and stale_index if there is no memory for them.
  template <class T>
  std::vector<T> copy(std::uint64_t offset, std::uint64_t count) const {
    check_memory_for(count, sizeof(T));
    std::vector<T> copied(static_cast<std::size_t>(count));
    copy_to(copied.data(), offset, copied.size() * sizeof(T));
    return copied;
  }

 private:
  void read_from(const StoredFile& file, std::uint64_t begin);
  void check_memory_for(std::uint64_t count, std::size_t width) const;
  void copy_to(void* out, std::uint64_t offset, std::size_t count) const;

  const std::string path_;
  std::shared_ptr<const StoredFile> file_;  // if mapped
  std::vector<std::uint64_t> owned_;
  const std::uint8_t* bytes_ = nullptr;
  std::uint64_t size_ = 0;
};

}  // namespace tfrfast
