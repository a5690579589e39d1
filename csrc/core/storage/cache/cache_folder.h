// A cache: a folder on a disk of this machine that keeps bytes from elsewhere, for all processes
// that name it, on local disks only.
//
//     <folder>/v2/used                how much the cache takes of the disk, and its last limit
//     <folder>/v2/<set>/<object>      a sparse file: what it is of, then the object's bytes where
//                                     they belong, then a log that is only appended to
//
// - Bytes are written first, and then the lines of the log that say they are there. Nothing is
//   believed but bytes that match the checksum in a line, so neither kill -9, nor a power cut, nor
//   a program that damages the files ever makes wrong bytes of them: they are fetched again.
// - A process that fetches a page says so in a line. Others wait for it, but not for long, so no
//   process ever waits for one that was stopped or killed.
// - Whoever uses a data set has its folder locked together with others (flock). Whoever removes
//   something of it locks it alone. The lock belongs to the open folder: a forked child has it,
//   too, and whatever way a process ends, the system gives the lock back.
// - Files are made, written and removed by one thread of all processes at a time, which has locked
//   `used`, and has taken space for them. Only lines are appended without that lock: each file has
//   space for a page of them, and a small part of the limit is left free for more. So the limit
//   holds at every moment, but for the empty folders of data sets that found no space, which have
//   to be there to be locked, and go when others give way.
// - The folder is opened once. All its files are opened through that descriptor.
//
// What cannot be kept is not kept, and nothing here is an error of reading.
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

namespace tfrfast {

// An object that a cache keeps something of.
struct CacheEntry {
  std::string url;
  std::uint64_t object_bytes = 0;
  std::uint64_t kept_bytes = 0;  // on the disk
  std::int64_t last_used_s = 0;
  bool is_in_use = false;
  std::uint64_t served_bytes = 0;   // that were read from here
  std::uint64_t fetched_bytes = 0;  // that came from elsewhere
};

// The contents of `used`.
struct CacheTotals {
  std::uint64_t magic = 0;
  std::uint64_t used_bytes = 0;
  std::uint64_t limit_bytes = 0;  // that anyone has last opened it with
  // What was read of objects that are no longer there.
  std::uint64_t served_bytes = 0;
  std::uint64_t fetched_bytes = 0;
  std::uint64_t check = 0;
};

class CacheSet;

// Safe from many threads. Shared by all in a process who name the same folder and limit.
class CacheFolder {
 public:
  // Makes the folder if it is not there. A folder that can only be read is used as it is. Throws
  // Error io, and EACCES if others could put files there. With a limit of 0, nothing is kept.
  static std::shared_ptr<CacheFolder> open(const std::string& folder, std::uint64_t limit_bytes);
  // The same for those who can do without: null, and a warning once a minute, if the disk is full
  // or cannot be used now. Throws Error io only for a folder that is the wrong one.
  static std::shared_ptr<CacheFolder> open_if_it_works(const std::string& folder,
                                                       std::uint64_t limit_bytes);
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;

  const std::string& path() const noexcept { return path_; }
  int descriptor() const noexcept { return root_->get(); }
  bool may_write() const noexcept { return why_read_only_ == 0; }
  // All zeros where nothing is known.
  CacheTotals totals() const noexcept;

  // How many of `bytes` there is space for, now. If there is not enough, data sets that nobody uses
  // give way, those used least recently first; this is tried every few seconds, by one thread.
  std::uint64_t space_for(std::uint64_t bytes) noexcept;

  // Has the totals to itself while it lives, in all processes. Nothing is written without it.
  class Account {
   public:
    // Waits for others, but not for long.
    explicit Account(CacheFolder& folder) noexcept;
    ~Account();
    Account(const Account&) = delete;
    Account& operator=(const Account&) = delete;
    bool is_open() const noexcept { return is_locked_; }

    // Takes up to so many bytes of the space that is left, before they are written.
    std::uint64_t take(std::uint64_t bytes) noexcept;
    // Of `taken` bytes, the disk has come to use so many.
    void settle(std::uint64_t taken, std::uint64_t used) noexcept;

   private:
    friend CacheFolder;
    bool store() noexcept;
    CacheFolder& folder_;
    int descriptor_ = -1;
    bool is_locked_ = false;
    CacheTotals totals_;
  };

  // Writing failed, if this is an errno that lasts. Says so once, and is_broken() for a minute:
  // nothing is kept meanwhile.
  void tell_of_failure(int system_error) noexcept;
  bool is_broken() const noexcept;

  std::vector<CacheEntry> entries() const;
  // Removes what nobody uses. Returns how many bytes that were.
  std::uint64_t clear() noexcept;

 private:
  friend class CacheSet;
  struct FoundFile {
    std::string name;
    std::int64_t written_ns = 0;
    std::uint64_t disk_bytes = 0;
  };
  struct FoundSet {
    std::string name;
    std::int64_t last_used_ns = 0;
    std::uint64_t disk_bytes = 0;  // of all
    std::vector<FoundFile> files;  // those written least recently first
  };
  CacheFolder(std::string path, std::uint64_t limit_bytes)
      : path_(std::move(path)), limit_bytes_(limit_bytes) {}
  void begin();
  void refuse_unless_private() const;
  // All data sets, those used least recently first.
  std::vector<FoundSet> find_sets() const;
  // Counts what there is, and removes what nobody uses until so many bytes are free.
  std::uint64_t remove_unused(Account& account, std::uint64_t wanted) noexcept;
  std::uint64_t remove_from(const FoundSet& set, std::uint64_t wanted, CacheTotals& totals) const;
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

// A data set that this process reads, or will: the objects whose URLs differ in their last part
// alone. While it lives, no process removes anything of the set, whether its objects are open or
// not. Safe from many threads.
class CacheSet {
 public:
  // A process locks so many sets apart. If it uses more, it locks them all.
  static constexpr std::size_t kMaxLocks = 128;

  // `place` is where URLs lead, if they do not say it themselves. Null if the set cannot be locked.
  static std::shared_ptr<const CacheSet> hold(std::shared_ptr<CacheFolder> folder,
                                              const std::string& url,
                                              const std::string& place = "") noexcept;
  ~CacheSet();
  CacheSet(const CacheSet&) = delete;
  CacheSet& operator=(const CacheSet&) = delete;

  CacheFolder& folder() const noexcept { return *folder_; }
  // Where an object's file is, in the cache's folder.
  std::string name_of(const std::string& url) const;

 private:
  CacheSet(std::shared_ptr<CacheFolder> folder, std::string name) noexcept
      : folder_(std::move(folder)), name_(std::move(name)) {}
  bool lock();

  const std::shared_ptr<CacheFolder> folder_;
  const std::string name_;
  std::shared_ptr<const FileDescriptor> lock_;
  bool is_counted_ = false;
};

// The set of `url` in the cache that `access` names. Null if it names none, or one that does not
// work now. Throws Error io for a folder that is the wrong one.
std::shared_ptr<const CacheSet> hold_cached(const std::string& url, const std::string& access);

// Opens what is below a folder. -1 and errno. Never follows a link.
int open_below(int folder, const std::string& name, int flags, unsigned mode = 0) noexcept;

// For everything in caches that threads share. fork() waits for it. Hold it briefly, and take no
// other lock meanwhile.
std::mutex& cache_mutex() noexcept;

}  // namespace tfrfast
