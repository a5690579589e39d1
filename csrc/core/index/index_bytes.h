// The bytes of an index, in memory or mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/storage/stored_file.h"

namespace tfrfast {

// Throws Error stale_index: why the index file at `path` is not used, and how to mend it.
[[noreturn]] void refuse_index(const std::string& path, const std::string& what);

// One shard's sections inside the file of a folder's index. Offsets count from the first section.
// The sections of a mapped file stay in the mapping; otherwise they are read into memory.
class IndexBytes {
 public:
  // Throws Error io and stale_index.
  IndexBytes(std::shared_ptr<const StoredFile> file, std::uint64_t begin, std::uint64_t bytes);

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  const std::uint8_t* at(std::uint64_t offset) const { return bytes_ + offset; }

  // Whether `count` values at `offset` lie inside.
  template <class T>
  bool holds(std::uint64_t offset, std::uint64_t count) const {
    return offset % alignof(T) == 0 && offset <= size() && count <= (size() - offset) / sizeof(T);
  }

  // Copies `count` values from `offset`, all of which must lie inside. Throws Error io if the
  // values cannot be read, and stale_index if memory cannot hold them.
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
  std::shared_ptr<const StoredFile> file_;  // null unless mapped
  std::vector<std::uint64_t> owned_;
  const std::uint8_t* bytes_ = nullptr;
  std::uint64_t size_ = 0;
};

}  // namespace tfrfast
