// What a process uses of a cache, as a file that other processes look into.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/storage/cache_ledger.h"

namespace tfrfast {

// A file of keys: a hash table of words, whose size is a power of two. Where a key may be is 0 if
// it was never there, or 1 if it is no longer. A file has its name only once it is complete, and a
// larger one takes its place, so whoever has opened one sees what was in use at that moment.
//
// One process has the name to itself. Its owner guards it from other threads.
class CacheRoster {
 public:
  // The room of its files is taken from this.
  struct Room {
    std::shared_ptr<CacheLedger> ledger;
    std::uint64_t limit_bytes = 0;
  };
  // A file with these keys, in the place of what a dead process may have left. Null if there is no
  // room for it, or it cannot be written.
  static std::unique_ptr<CacheRoster> make(std::string file, Room room,
                                           const std::vector<std::uint64_t>& keys) noexcept;
  ~CacheRoster();  // leaves the file, as another process may have it now
  CacheRoster(const CacheRoster&) = delete;
  CacheRoster& operator=(const CacheRoster&) = delete;

  // A key that is not listed. False if there is no room for it, or it cannot be written. Others see
  // it once this has returned.
  bool add(std::uint64_t key) noexcept;
  void remove(std::uint64_t key) noexcept;
  // Removes the file, and gives its room back.
  void end() noexcept;

  // Whether the file that another process has lists the key. True if it cannot be read.
  static bool may_list(const std::string& file, std::uint64_t key) noexcept;

 private:
  CacheRoster(std::string file, Room room) noexcept
      : file_(std::move(file)), room_(std::move(room)) {}
  bool write_anew(const std::vector<std::uint64_t>& keys);
  std::size_t place_for(std::uint64_t key) const noexcept;
  bool write_word(std::size_t place, std::uint64_t word) noexcept;

  const std::string file_;
  const Room room_;
  int descriptor_ = -1;
  std::vector<std::uint64_t> words_;  // what is in the file
  std::size_t taken_words_ = 0;       // that are not 0
};

}  // namespace tfrfast
