// A folder on a local disk that keeps bytes of objects on a network, for all processes of a machine
// together: docs/design.md says how. This is its bookkeeping: how much room there is, and which
// objects are in use. The bytes themselves are in CachedObject.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/storage/shared_words.h"

namespace tfrfast {

// The unit of room, and of what is kept: a page of the filesystem.
inline constexpr std::uint64_t kCachePageBytes = 4096;

// Which folder `access` names as a cache, and what is left of it for the client. It begins with
// "cache:<limit>:<bytes of the folder's name>:<folder>" if it names one, and goes on with
// "at:<bytes>:<place>" if there is a place.
struct CacheAccess {
  std::string folder;  // empty without a cache
  std::string place;   // where URLs lead, if they do not say it themselves: an endpoint, an account
  std::uint64_t limit_bytes = 0;
  std::string client;
};
CacheAccess split_access(const std::string& access);  // throws Error invalid

// What an object's table says in its first page. All further words are its pages, one each.
struct CacheTable {
  static constexpr std::size_t kHeaderWords = 512;
  static constexpr std::uint64_t kMagic = 0x3145'4843'4143'5254;  // "TRCACHE1"
  static constexpr std::size_t kMaxIdentityBytes = 3500;
  enum Word : std::size_t { magic, object_bytes, url_bytes, identity_bytes, text = 16 };

  static std::uint64_t pages_of(std::uint64_t bytes) noexcept {
    return bytes / kCachePageBytes + (bytes % kCachePageBytes != 0);
  }
  static std::size_t words_of(std::uint64_t bytes) noexcept {
    return kHeaderWords + static_cast<std::size_t>(pages_of(bytes));
  }
  // What its file takes of the disk, and the folder that it lies in.
  static std::uint64_t room_of(std::uint64_t bytes) noexcept {
    return room_of_words(words_of(bytes));
  }
  static std::uint64_t room_of_words(std::size_t words) noexcept {
    return (pages_of(words * sizeof(std::uint64_t)) + 1) * kCachePageBytes;
  }
};

// An object that a folder keeps something of.
struct CacheEntry {
  std::string url;
  std::uint64_t object_bytes = 0;
  std::uint64_t kept_bytes = 0;  // and room that is taken for it
  std::int64_t last_used_s = 0;
  bool is_in_use = false;
};

// Safe from many threads. Shared by all in a process who name the same folder and limit.
class CacheFolder : public std::enable_shared_from_this<CacheFolder> {
 public:
  // Makes the folder if it is not there. Throws Error io. A limit of 0 is for those who only look
  // at it.
  static std::shared_ptr<CacheFolder> open(const std::string& folder, std::uint64_t limit_bytes);
  // The same for those who can do without: null, and a warning once a minute, if the disk is full
  // or cannot be used now. Throws Error io only for a folder that is the wrong one.
  static std::shared_ptr<CacheFolder> open_if_it_works(const std::string& folder,
                                                       std::uint64_t limit_bytes);
  ~CacheFolder();
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;

  const std::string& path() const noexcept { return path_; }
  std::uint64_t limit_bytes() const noexcept { return limit_bytes_; }
  std::uint64_t used_bytes() const noexcept;
  std::uint64_t last_limit_bytes() const noexcept;  // that anyone has opened it with

  // Takes room for up to that many bytes, in units. What is returned is now used, and never more
  // than the limit is. If there is not enough, objects that nobody uses give way.
  std::uint64_t reserve(std::uint64_t bytes, std::uint64_t unit) noexcept;
  void give_back(std::uint64_t bytes) noexcept;

  // What is in use does not give way: an object's own files, by the key of its version, and all
  // objects of a set, by set_of() one of them. So a reader of a set need not open all of it first.
  void begin_use(std::uint64_t key) noexcept;
  void end_use(std::uint64_t key) noexcept;

  // Objects that are open in this process count, whether anything of them is kept or not.
  void count_object(std::uint64_t bytes) noexcept;
  void discount_object(std::uint64_t bytes) noexcept;
  // Whether there is room for all that are open.
  bool fits() const noexcept;

  // Writing failed. Says so once, and is_broken() for a minute.
  void tell_of_failure(int system_error) noexcept;
  bool is_broken() const noexcept;

  // The objects whose URLs differ in their last part alone are a set.
  static std::uint64_t set_of(const std::string& url) noexcept;
  // The tables and the bytes of an object are in two files beside each other.
  std::string folder_of(const std::string& url) const;
  static std::string name_of(std::uint64_t key);

  std::vector<CacheEntry> entries() const;
  // Removes what nobody uses. Returns how many bytes that were.
  std::uint64_t clear() noexcept;
  // Removes the other versions of an object, unless somebody uses them.
  void remove_versions(const std::string& url, std::uint64_t but) noexcept;
  // Removes a version that is damaged, if its user is the only one.
  bool remove_damaged(const std::string& url, std::uint64_t key) noexcept;

 private:
  struct Candidate {
    std::string folder;
    std::uint64_t set = 0;
    std::uint64_t key = 0;
    std::int64_t last_used_ns = 0;
  };
  CacheFolder(std::string path, std::uint64_t limit_bytes);
  friend void part_cache_folders() noexcept;
  void take_other_locks() noexcept;

  void begin();
  void refuse_unless_private() const;
  void recount();
  // Those whose sets this process uses only if it asks for them, as there may be very many.
  std::vector<Candidate> candidates(bool with_used) const;
  std::uint64_t remove(const Candidate& which) noexcept;  // 0 if this version is in use
  std::uint64_t remove_files(const Candidate& which) noexcept;
  std::uint64_t remove_unless_set_is_used(const Candidate& which) noexcept;
  void make_room(std::uint64_t bytes) noexcept;

  const std::string path_;
  const std::uint64_t limit_bytes_;
  std::unique_ptr<SharedWords> ledger_;
  int users_ = -1;  // locks on its bytes say who uses what; no two processes share it
  std::map<std::uint64_t, int> in_use_;
  std::atomic<std::uint64_t> open_bytes_{0};
  std::atomic<std::int64_t> no_room_until_ms_{0};
  std::atomic<std::int64_t> broken_until_ms_{0};
};

}  // namespace tfrfast
