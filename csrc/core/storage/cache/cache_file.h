// The file in which a cache keeps one version of an object: a page that names the object, the
// object's bytes at their places, and a log of lines that is only appended to.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/storage/cache/cache_folder.h"
#include "core/storage/cache/cache_log.h"
#include "core/storage/local/file_descriptor.h"

namespace tfrfast {

// Safe from many threads. The file is known by its device and inode. If the file was renamed,
// removed, replaced or cut short, it is never touched again, because holes would read as zeros.
class CacheFile {
 public:
  // The place of the object's first byte in the file. The header has the page before it.
  static constexpr std::uint64_t kObjectBegin = kCachePageBytes;
  using Descriptor = std::shared_ptr<const FileDescriptor>;

  CacheFile(std::shared_ptr<const CacheSet> set, CacheHeader header);
  ~CacheFile();
  CacheFile(const CacheFile&) = delete;
  CacheFile& operator=(const CacheFile&) = delete;

  // Opens or makes the file. Replaces a file of another object and a damaged file. False if the
  // file cannot be read, or the disk has no space.
  bool open();
  CacheFolder& folder() const noexcept { return set_->folder(); }

  // For reading, and for appending lines. All files share a few descriptors, so hold the result
  // briefly. Null if the file is gone.
  Descriptor descriptor() const noexcept;
  // For writing the object's bytes. Null if the file is gone.
  Descriptor descriptor_of_bytes() const noexcept;

  // Appends lines. Returns 0 or an errno.
  int append(const FileDescriptor& file, std::span<const CacheLine> lines) const noexcept;
  // Calls take(line) for each line appended since the last call. Call with cache_mutex() held.
  using Take = std::function<void(const CacheLine&)>;
  void read_new_lines(const FileDescriptor& file, const Take& take) noexcept;
  // Whether the log is so long that no more lines should be added, except lines for kept pages.
  bool has_many_lines() const noexcept;

 private:
  bool open_existing();
  bool make();
  bool is_still(const FileDescriptor& file) const noexcept;

  const std::shared_ptr<const CacheSet> set_;
  const CacheHeader header_;
  const std::string name_;
  const std::uint64_t log_begin_;
  std::uint64_t log_end_;  // end of the part read so far
  std::uint64_t device_ = 0;
  std::uint64_t inode_ = 0;
  mutable std::atomic<bool> was_removed_{false};
};

// Describes a file of a cache: its object, and how much of it was read. False for any other file.
bool describe_cached(int folder, const std::string& name, CacheEntry& entry) noexcept;

// Returns 0 or an errno.
int write_all(int descriptor, std::uint64_t offset, const std::uint8_t* bytes,
              std::uint64_t count) noexcept;
// The disk space of an open file.
std::uint64_t disk_bytes_of(int descriptor) noexcept;

}  // namespace tfrfast
