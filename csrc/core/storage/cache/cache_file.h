// The file in which a cache keeps one version of an object: a page that names the object, the
// object's bytes at their places, and a log of lines that is only appended to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/storage/cache/cache_folder.h"
#include "core/storage/local/file_descriptor.h"

namespace tfrfast {

// The unit of keeping is a page. The unit of a line is a block of up to 16 pages. A mask has a bit
// for each page of a block.
inline constexpr std::uint64_t kCachePageBytes = 4096;
inline constexpr std::uint64_t kCacheBlockPages = 16;
inline constexpr std::uint64_t kCacheBlockBytes = kCachePageBytes * kCacheBlockPages;
using PageMask = std::uint16_t;

inline std::uint64_t cache_pages_of(std::uint64_t bytes) noexcept {
  return bytes / kCachePageBytes + (bytes % kCachePageBytes != 0);
}

enum class CacheLineKind : std::uint16_t {
  kept = 1,  // the pages are present: `first` is their checksum
  // a process fetches the pages: `first` is its number, `second` the claimer, `third` the time
  claimed,
  released,  // the claimer's claims of these pages end
  traffic,   // `first` bytes were read from the cache, `second` bytes were fetched
};

// Each line stands alone: a line that does not match its checksum counts as never written.
struct CacheLine {
  std::uint32_t block = 0;
  PageMask pages = 0;
  CacheLineKind kind = CacheLineKind::kept;
  std::uint32_t first = 0;
  std::uint32_t second = 0;
  std::uint32_t third = 0;
  std::uint32_t check = 0;  // of all earlier bytes; set by append()
};
static_assert(sizeof(CacheLine) == 24);

// Safe from many threads. The file is known by its device and inode. If the file was renamed,
// removed, replaced or cut short, it is not touched, because holes would read as zeros.
class CacheFile {
 public:
  // The place of the object's first byte in the file.
  static constexpr std::uint64_t kObjectBegin = kCachePageBytes;

  CacheFile(std::shared_ptr<const CacheSet> set, const std::string& url,
            const std::string& identity, std::uint64_t object_bytes);
  ~CacheFile();
  CacheFile(const CacheFile&) = delete;
  CacheFile& operator=(const CacheFile&) = delete;

  // Finds or makes the file. Replaces a file of another object and a damaged file. False if the
  // file cannot be read, or the disk has no space.
  bool open();
  CacheFolder& folder() const noexcept { return set_->folder(); }

  // Open to read and to append lines, or to write the object's bytes. Null if the file is gone. All
  // files share a few descriptors of the first kind, so hold the result briefly.
  using Descriptor = std::shared_ptr<const FileDescriptor>;
  Descriptor open_lines() const noexcept;
  Descriptor open_bytes() const noexcept;

  // Appends lines. Returns 0 or an errno.
  static int append(const FileDescriptor& file, std::span<const CacheLine> lines) noexcept;
  // Calls take(line) for each line appended since the last call. Call with cache_mutex() held.
  using Take = std::function<void(const CacheLine&)>;
  void read_new_lines(const FileDescriptor& file, const Take& take) noexcept;
  // Whether the log is so long that no more lines should be added, except lines for kept pages.
  bool has_many_lines() const noexcept;

 private:
  bool find();
  bool make();
  Descriptor open_as(int flags) const;
  bool is_still(const FileDescriptor& file) const noexcept;

  const std::shared_ptr<const CacheSet> set_;
  const std::string header_;  // a page, or empty if the names are too long
  const std::string name_;
  const std::uint64_t log_begin_;
  std::uint64_t log_end_;  // end of the part read so far
  std::uint64_t device_ = 0;
  std::uint64_t inode_ = 0;
};

// Describes a file of a cache: its object, and how much of it was read. False for any other file.
bool describe_cached(int folder, const std::string& name, CacheEntry& entry) noexcept;

// Returns 0 or an errno.
int write_all(int descriptor, std::uint64_t offset, const void* bytes,
              std::uint64_t count) noexcept;
// The disk space of an open file.
std::uint64_t disk_bytes_of(int descriptor) noexcept;

}  // namespace tfrfast
