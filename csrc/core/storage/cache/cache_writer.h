// Writes what has come into caches, on a thread of its own: the network does not wait for the disk,
// nor does anyone who has asked for it. Others who want it from the cache do, a little.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "core/storage/cache/cached_object.h"

namespace tfrfast {

// One for the process. If the disk cannot keep up, some of what has come is not kept, and comes
// again when it is needed. A forked child has a writer of its own.
class CacheWriter {
 public:
  static CacheWriter& instance();
  static std::mutex& mutex() noexcept;

  // Keeps bytes of `object`, which `bytes` owns. Never fails: in need, it drops them.
  void add(std::shared_ptr<CachedObject> object, std::uint64_t offset,
           std::shared_ptr<const std::uint8_t> bytes, std::uint64_t count) noexcept;
  // Waits until everything is written, but no longer than that.
  void finish(int max_wait_ms) noexcept;

 private:
  struct Piece {
    std::shared_ptr<CachedObject> object;
    std::shared_ptr<const std::uint8_t> bytes;
    std::uint64_t offset = 0;
    std::uint64_t count = 0;
  };
  friend void mend_cache_writer_in_child() noexcept;
  CacheWriter() : changed_(new std::condition_variable) {}
  void work();

  std::condition_variable* changed_;  // never destroyed: a forked child gets another one
  std::deque<Piece> queue_;
  std::deque<Piece> lost_;  // in a fork: the parent writes them
  std::uint64_t queued_bytes_ = 0;
  bool is_running_ = false;
  bool is_writing_ = false;
};

}  // namespace tfrfast
