// A cache: a folder on a local disk that keeps bytes from elsewhere, for all processes that name
// the folder.
//
//     <folder>/v2/<set>/<object>   a sparse file (cached_object.h)
//
// - A process that uses a data set locks the set's folder together with others (flock). A process
//   that removes files of the set locks the folder alone. The lock belongs to the open folder: a
//   forked child shares the lock, and the system releases the lock however a process ends.
// - Files are made and written without a lock. Each process counts the files now and then, and adds
//   what it writes meanwhile. So processes that write at the same time may pass the limit a little.
// - The folder is opened once. All files are opened through that descriptor.
//
// Bytes that cannot be kept are dropped. No failure of a cache is an error of reading.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "core/storage/local/file_descriptor.h"
#include "core/storage/storage_options.h"

namespace tfrfast {

class CacheSet;

// Safe from many threads. All users in a process of the same folder and limit share an object.
class CacheFolder {
 public:
  // Makes the folder if necessary. A read-only folder is used without changes. Throws Error io, and
  // EACCES if other users could put files there. With a limit of 0, nothing is kept.
  static std::shared_ptr<CacheFolder> open(const std::string& folder, std::uint64_t limit_bytes);
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;

  int descriptor() const noexcept { return root_->get(); }
  bool may_write() const noexcept { return why_read_only_ == 0; }

  // Returns how many of `bytes` have space now. If space is short, one thread removes unused data
  // sets, least recently opened first, at most every few seconds.
  std::uint64_t space_for(std::uint64_t bytes) noexcept;
  // Call after bytes were written.
  void count_written(std::uint64_t bytes) noexcept { used_bytes_ += bytes; }

  // Call after a failed write. For a lasting errno, warns once, and sets is_broken() for a minute:
  // meanwhile nothing is kept.
  void tell_of_failure(int system_error) noexcept;
  bool is_broken() const noexcept;

  // Removes all unused data sets. Returns the number of freed bytes.
  std::uint64_t clear() noexcept;

 private:
  friend class CacheSet;
  CacheFolder(std::string path, std::uint64_t limit_bytes)
      : path_(std::move(path)), limit_bytes_(limit_bytes) {}
  void begin();
  void refuse_unless_private() const;
  std::uint64_t free_bytes() const noexcept;
  // Counts all files. If fewer than `needed` bytes are free, removes unused data sets until
  // `wanted` bytes are free. Returns the number of freed bytes.
  std::uint64_t count_and_remove(std::uint64_t needed, std::uint64_t wanted) noexcept;
  const std::string path_;
  const std::uint64_t limit_bytes_;
  std::unique_ptr<const FileDescriptor> root_;
  int why_read_only_ = 0;  // an errno
  std::atomic<std::uint64_t> used_bytes_{0};
  std::atomic<std::uint64_t> counted_bytes_{0};  // `used_bytes_` after the last count
  std::atomic<std::int64_t> next_count_ms_{0};
  std::atomic<std::int64_t> next_search_ms_{0};
  std::atomic<std::int64_t> broken_until_ms_{0};
  // Guarded by cache_mutex().
  std::map<std::string, std::weak_ptr<const CacheSet>> sets_;
};

// A data set that this process reads or will read: all objects whose URLs differ only in their last
// part. While the object lives, no process removes files of the set, open or not. Safe from many
// threads.
class CacheSet {
 public:
  // `place` is the place that URLs lead to, if URLs do not say. Null if the set cannot be locked,
  // or if locks would take more than a quarter of the process's descriptors, with a warning.
  static std::shared_ptr<const CacheSet> hold(std::shared_ptr<CacheFolder> folder,
                                              const std::string& url,
                                              const std::string& place = "") noexcept;
  ~CacheSet();
  CacheSet(const CacheSet&) = delete;
  CacheSet& operator=(const CacheSet&) = delete;

  CacheFolder& folder() const noexcept { return *folder_; }
  // The path of an object's file inside the cache's folder.
  std::string name_of(const std::string& url) const;

 private:
  CacheSet(std::shared_ptr<CacheFolder> folder, std::string name) noexcept;
  bool lock();

  const std::shared_ptr<CacheFolder> folder_;
  const std::string name_;
  std::unique_ptr<const FileDescriptor> lock_;
};

// The set of `url` in the cache that `options` name. Null if `options` name no cache, or the cache
// does not work now. Throws Error io for an unsuitable folder.
std::shared_ptr<const CacheSet> hold_cached(const std::string& url, const StorageOptions& options);
// The same in the cache for inflated bytes. `is_remote` says whether the options' place counts.
std::shared_ptr<const CacheSet> hold_inflated(const std::string& name,
                                              const StorageOptions& options, bool is_remote);

// Opens a file below a folder. Returns -1 and sets errno on failure. Never follows a link.
int open_below(int folder, const std::string& name, int flags, unsigned mode = 0) noexcept;

// Guards all cache data that threads share. fork() waits for the mutex. Hold it briefly, and take
// no other lock meanwhile.
std::mutex& cache_mutex() noexcept;

}  // namespace tfrfast
