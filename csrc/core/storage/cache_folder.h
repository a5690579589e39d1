// A folder on a local disk that keeps bytes of objects on a network, for all processes of a machine
// together: docs/design.md says how. This is its bookkeeping: how much room there is, and what
// gives way when there is none. The bytes themselves are in CachedObject.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/storage/cache_ledger.h"
#include "core/storage/cache_users.h"

namespace tfrfast {

// An object that a folder keeps something of.
struct CacheEntry {
  std::string url;
  std::uint64_t object_bytes = 0;
  std::uint64_t kept_bytes = 0;  // and room that is taken for it
  std::int64_t last_used_s = 0;
  bool is_in_use = false;
  std::uint64_t served_bytes = 0;   // that were read from here
  std::uint64_t fetched_bytes = 0;  // that came from the network
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
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;

  const std::string& path() const noexcept { return path_; }
  std::uint64_t limit_bytes() const noexcept { return limit_bytes_; }
  std::uint64_t used_bytes() const noexcept { return ledger_->used_bytes(); }
  // That anyone has opened it with.
  std::uint64_t last_limit_bytes() const noexcept { return ledger_->last_limit_bytes(); }
  // What was read of objects that are no longer there.
  CacheLedger::Traffic past_traffic() const noexcept { return ledger_->past_traffic(); }
  // The disk gives out whole blocks.
  std::uint64_t block_bytes() const noexcept { return block_bytes_; }

  // Takes room for up to that many bytes, in units. What is returned is now used, and never more
  // than the limit is. If there is not enough, objects that nobody uses give way.
  std::uint64_t reserve(std::uint64_t bytes, std::uint64_t unit) noexcept;
  void give_back(std::uint64_t bytes) noexcept { ledger_->give_back(bytes); }
  // The disk takes this much more than what room was taken for.
  void charge(std::uint64_t bytes) noexcept { ledger_->add(bytes); }

  // Who uses which versions of objects, and which sets.
  CacheUsers& users() const noexcept { return *users_; }
  // Whether there is room for all objects that this process may read.
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

  void begin();
  void refuse_unless_private() const;
  void put_in_order();
  // Those whose sets this process uses only if it asks for them, as there may be very many.
  std::vector<Candidate> candidates(bool with_used) const;
  std::uint64_t remove(const Candidate& which) noexcept;  // 0 if this version is in use
  std::uint64_t remove_files(const Candidate& which) noexcept;
  std::uint64_t remove_unless_set_is_used(const Candidate& which) noexcept;
  bool make_room(std::uint64_t bytes) noexcept;

  const std::string path_;
  const std::uint64_t limit_bytes_;
  std::uint64_t block_bytes_ = 0;
  std::shared_ptr<CacheLedger> ledger_;
  std::shared_ptr<CacheUsers> users_;
  std::atomic<std::int64_t> no_room_until_ms_{0};
  std::atomic<std::int64_t> broken_until_ms_{0};
};

}  // namespace tfrfast
