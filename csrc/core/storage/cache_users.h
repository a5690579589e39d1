// Who uses what of a cache: locks on bytes of one of its files, which a process that dies gives
// back. The system looks at all locks of a file whenever one changes, so a process has only a few:
// what else it uses is listed in a file of its own, which counts as long as the process has the
// lock that belongs to that file.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/storage/cache_ledger.h"
#include "core/storage/cache_roster.h"

namespace tfrfast {

// A process has one for each such file, whatever names and limits the folder was opened with: where
// locks belong to processes, closing the file once would end them all. Safe from many threads.
class CacheUsers {
 public:
  // The file is made if it is not there. Throws Error io.
  static std::shared_ptr<CacheUsers> open(const std::string& file);
  CacheUsers(std::string file, int descriptor) noexcept;
  ~CacheUsers();
  CacheUsers(const CacheUsers&) = delete;
  CacheUsers& operator=(const CacheUsers&) = delete;

  // Whether nobody else has the folder open, here or elsewhere. Then nobody will before this
  // process calls share(). Throws Error io if the filesystem has no locks.
  bool begin_alone();
  // From now on this process has the folder open, as others may. False if one of them has been
  // alone for half a minute.
  bool share();

  // Where the room for lists is taken from, within the limit. Without that, there are only locks.
  void take_room_from(std::shared_ptr<CacheLedger> ledger, std::uint64_t limit_bytes) noexcept;
  // What is left of lists, when nobody has the folder open.
  static bool is_list(const std::string& name) noexcept;

  // What is in use does not give way: an object's own files, by the key of its version, and all
  // objects of a set. Waits while another thread, or process, has the key to itself.
  void begin_use(std::uint64_t key) noexcept;
  void end_use(std::uint64_t key) noexcept;
  bool is_used_here(std::uint64_t key) const noexcept;

  // Objects that this process may read, whether anything of them is kept or not: each counts once,
  // however often it is open.
  void count_object(std::uint64_t object, std::uint64_t room_bytes);
  void discount_object(std::uint64_t object) noexcept;
  std::uint64_t room_of_objects() const noexcept { return room_of_objects_; }

  // Has a key to itself while it lives, if `is_held`: nobody begins to use it. It is short-lived,
  // as fork() waits for it.
  class Alone {
   public:
    // Held unless somebody uses the key, but for `own_uses` of the caller's.
    Alone(CacheUsers& users, std::uint64_t key, int own_uses = 0) noexcept;
    ~Alone();
    Alone(const Alone&) = delete;
    Alone& operator=(const Alone&) = delete;
    bool is_held() const noexcept { return is_held_; }

   private:
    CacheUsers& users_;
    const std::uint64_t key_;
    const int own_uses_;
    bool is_held_ = false;
  };

  // Around a fork, after no thread is opening a folder any more.
  static void before_fork() noexcept;
  static void in_parent() noexcept;
  static void in_child() noexcept;

 private:
  void list_if_many(std::uint64_t key);
  std::unique_ptr<CacheRoster> begin_list(int descriptor,
                                          const std::vector<std::uint64_t>& keys) const;
  bool is_listed_by_others(std::uint64_t key) const noexcept;
  std::string name_of_list(std::uint64_t list) const;
  void lock_as_used(std::uint64_t key) noexcept;
  struct Locks {
    int descriptor = -1;
    std::unique_ptr<CacheRoster> list;
  };
  Locks take_all_locks() const noexcept;
  void hold(Locks taken) noexcept;
  void go_on_as_parent() noexcept;
  void go_on_as_child() noexcept;

  const std::string file_;
  int descriptor_;
  Locks parents_;  // in a fork
  bool is_shared_ = false;
  struct Use {
    int times = 0;
    bool is_listed = false;  // its byte is not locked then
  };
  std::map<std::uint64_t, Use> in_use_;
  std::size_t locks_ = 0;  // keys in use that are not listed
  CacheRoster::Room room_;
  std::unique_ptr<CacheRoster> list_;
  std::set<std::uint64_t> alone_;
  struct Counted {
    std::uint64_t room_bytes = 0;
    int times = 0;
  };
  std::unordered_map<std::uint64_t, Counted> objects_;
  std::atomic<std::uint64_t> room_of_objects_{0};
};

}  // namespace tfrfast
