// A cache: a folder on a local disk that keeps bytes from elsewhere, for all processes that name
// the folder.
//
//     <folder>/v2/used             the disk space that the cache uses, and its last limit
//     <folder>/v2/<set>/<object>   a sparse file: a header, the object's bytes at their places, and
//                                  a log that is only appended to
//
// - Bytes are written first, then the lines of the log that record them. Only bytes that match the
//   checksum in a line are believed. So neither kill -9, nor a power cut, nor a program that
//   damages the files ever produces wrong bytes: damaged bytes are fetched again.
// - A process that fetches a page claims the page in a line. Other processes wait for the page, but
//   not for long, so no process waits for a process that was stopped or killed.
// - A process that uses a data set locks the set's folder together with others (flock). A process
//   that removes files of the set locks the folder alone. The lock belongs to the open folder: a
//   forked child shares the lock, and the system releases the lock however a process ends.
// - One thread of all processes at a time makes, writes and removes files. That thread has locked
//   `used`, and has reserved space for the files. Only lines are appended without the lock: each
//   file has space for a page of lines, and a small part of the limit is left free for more. So the
//   limit holds at every moment, except for the empty folders of data sets for which no space was
//   found. Such folders must exist to be locked, and are removed when other sets give way.
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
#include <vector>

#include "core/storage/local/file_descriptor.h"
#include "core/storage/storage_options.h"

namespace tfrfast {

// An object in a cache.
struct CacheEntry {
  std::string url;
  std::uint64_t object_bytes = 0;
  std::uint64_t kept_bytes = 0;  // on the disk
  std::int64_t last_used_s = 0;
  bool is_in_use = false;
  std::uint64_t served_bytes = 0;   // read from the cache
  std::uint64_t fetched_bytes = 0;  // fetched from elsewhere
};

// The contents of `used`.
struct CacheTotals {
  std::uint64_t magic = 0;
  std::uint64_t used_bytes = 0;
  std::uint64_t limit_bytes = 0;  // of the last opening by any process
  // Traffic of objects that were removed.
  std::uint64_t served_bytes = 0;
  std::uint64_t fetched_bytes = 0;
  std::uint64_t check = 0;
};

class CacheSet;

// Safe from many threads. All users in a process of the same folder and limit share an object.
class CacheFolder {
 public:
  // Makes the folder if necessary. A read-only folder is used without changes. Throws Error io, and
  // EACCES if other users could put files there. With a limit of 0, nothing is kept.
  static std::shared_ptr<CacheFolder> open(const std::string& folder, std::uint64_t limit_bytes);
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;

  const std::string& path() const noexcept { return path_; }
  int descriptor() const noexcept { return root_->get(); }
  bool may_write() const noexcept { return why_read_only_ == 0; }
  // All zeros if unknown.
  CacheTotals totals() const noexcept;

  // Returns how many of `bytes` have space now. If space is short, one thread removes unused data
  // sets, least recently used first, at most every few seconds.
  std::uint64_t space_for(std::uint64_t bytes) noexcept;

  // Locks an open file or folder alone while it lives, if is_held(). A forked child does not keep
  // the lock.
  class Alone {
   public:
    // Takes over the descriptor. Waits for other processes, at most `max_wait_ms`.
    Alone(int opened, std::int64_t max_wait_ms) noexcept;
    ~Alone();
    Alone(const Alone&) = delete;
    Alone& operator=(const Alone&) = delete;
    bool is_held() const noexcept { return is_held_; }
    int descriptor() const noexcept { return file_.get(); }

   private:
    const FileDescriptor file_;
    const bool is_held_;
  };

  // Locks the totals in all processes while it lives. Required for every write.
  class Account {
   public:
    // Waits for other processes, but not for long.
    explicit Account(CacheFolder& folder) noexcept;
    bool is_open() const noexcept { return used_.is_held(); }

    // Reserves up to `bytes` bytes of the free space, before they are written.
    std::uint64_t take(std::uint64_t bytes) noexcept;
    // Of `taken` reserved bytes, `used` bytes are now used on the disk.
    void settle(std::uint64_t taken, std::uint64_t used) noexcept;

   private:
    friend CacheFolder;
    bool store() noexcept;
    CacheFolder& folder_;
    const Alone used_;
    CacheTotals totals_;
  };

  // Call after a failed write. For a lasting errno, warns once, and sets is_broken() for a minute:
  // meanwhile nothing is kept.
  void tell_of_failure(int system_error) noexcept;
  bool is_broken() const noexcept;

  std::vector<CacheEntry> entries() const;
  // Removes all unused data sets. Returns the number of freed bytes.
  std::uint64_t clear() noexcept;

 private:
  friend class CacheSet;
  // A data set, or a file of a data set.
  struct Found {
    std::string name;
    std::int64_t written_ns = 0;
    std::uint64_t disk_bytes = 0;  // without the files of the set
    std::vector<Found> files;
  };
  CacheFolder(std::string path, std::uint64_t limit_bytes)
      : path_(std::move(path)), limit_bytes_(limit_bytes) {}
  void begin();
  void refuse_unless_private() const;
  int open_set(const std::string& name) const noexcept;
  // Lists a folder of the cache, least recently written first.
  std::vector<Found> find_in(const std::string& folder) const;
  std::vector<Found> find_sets() const;
  // Counts all files, and removes unused data sets until `wanted` bytes are free.
  std::uint64_t remove_unused(Account& account, std::uint64_t wanted) noexcept;
  std::uint64_t remove_from(const Found& set, std::uint64_t wanted, CacheTotals& totals) const;
  std::shared_ptr<const FileDescriptor> hold_everything();
  std::uint64_t usable_bytes() const noexcept;

  const std::string path_;
  const std::uint64_t limit_bytes_;
  std::unique_ptr<const FileDescriptor> root_;
  int why_read_only_ = 0;  // an errno
  std::atomic<std::int64_t> next_search_ms_{0};
  std::atomic<std::int64_t> broken_until_ms_{0};
  std::atomic<std::int64_t> locks_fail_until_ms_{0};
  // Guarded by cache_mutex().
  std::map<std::string, std::weak_ptr<const CacheSet>> sets_;
  std::weak_ptr<const FileDescriptor> everything_;
  std::atomic<std::size_t> sets_held_{0};
};

// A data set that this process reads or will read: all objects whose URLs differ only in their last
// part. While the object lives, no process removes files of the set, open or not. Safe from many
// threads.
class CacheSet {
 public:
  // The most sets that a process locks separately. With more sets, the process locks all sets.
  static constexpr std::size_t kMaxLocks = 128;

  // `place` is the place that URLs lead to, if URLs do not say. Null if the set cannot be locked.
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
  std::shared_ptr<const FileDescriptor> lock_;
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
