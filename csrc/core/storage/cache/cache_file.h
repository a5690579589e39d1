// The file in which a cache keeps one version of an object: a page that says of what, the object's
// bytes where they belong, and lines, which are only ever appended.
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

// Safe from many threads. The file is known by its device and inode: if its name is another's by
// now, if it has none, or if it was cut short, it is never touched again, as holes would read as
// zeros.
class CacheFile {
 public:
  // The object's first byte in the file. What says of what it is has a page to itself.
  static constexpr std::uint64_t kObjectBegin = kCachePageBytes;
  using Descriptor = std::shared_ptr<const FileDescriptor>;

  CacheFile(std::shared_ptr<const CacheSet> set, CacheHeader header);
  ~CacheFile();
  CacheFile(const CacheFile&) = delete;
  CacheFile& operator=(const CacheFile&) = delete;

  // Makes the file, in the place of any that is of something else or damaged. False if it cannot be
  // read, or there is no space.
  bool open();
  CacheFolder& folder() const noexcept { return set_->folder(); }

  // To read, and to append lines. Few of them serve all files, so hold it briefly. Null if the file
  // is not there any more.
  Descriptor descriptor() const noexcept;
  // To write bytes of the object. Null if the file is not there any more.
  Descriptor descriptor_of_bytes() const noexcept;

  // Appends lines. 0, or an errno.
  int append(const FileDescriptor& file, std::span<const CacheLine> lines) const noexcept;
  // Calls take(line) for the lines that were appended since the last call. Call it with
  // cache_mutex() held.
  using Take = std::function<void(const CacheLine&)>;
  void read_new_lines(const FileDescriptor& file, const Take& take) noexcept;
  // Whether there are so many lines that no more should be added, but for pages that are kept.
  bool has_many_lines() const noexcept;

 private:
  bool open_existing();
  bool make();
  bool is_still(const FileDescriptor& file) const noexcept;

  const std::shared_ptr<const CacheSet> set_;
  const CacheHeader header_;
  const std::string name_;
  const std::uint64_t log_begin_;
  std::uint64_t log_end_;  // as far as it was read
  std::uint64_t device_ = 0;
  std::uint64_t inode_ = 0;
  mutable std::atomic<bool> was_removed_{false};
};

// What a file of a cache is of, and how much of it was read. False if it is not one.
bool describe_cached(int folder, const std::string& name, CacheEntry& entry) noexcept;

// 0, or an errno.
int write_all(int descriptor, std::uint64_t offset, const std::uint8_t* bytes,
              std::uint64_t count) noexcept;
// What an open file takes of the disk.
std::uint64_t disk_bytes_of(int descriptor) noexcept;

}  // namespace tfrfast
