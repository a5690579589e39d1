// Writes fetched bytes into caches, on a thread of its own. Neither the network nor the requesting
// readers wait for the disk. Other processes that want the bytes from the cache wait a little.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "core/storage/cache/cached_object.h"

namespace tfrfast {

// One per process. If the disk cannot keep up, some fetched bytes are dropped, and fetched again
// when needed. A forked child has a writer of its own.
class CacheWriter {
 public:
  static CacheWriter& instance();
  static std::mutex& mutex() noexcept;

  // Keeps bytes of `object`. `bytes` owns the memory. Never fails: drops the bytes if necessary.
  void add(std::shared_ptr<CachedObject> object, std::uint64_t offset,
           std::shared_ptr<const std::uint8_t> bytes, std::uint64_t count) noexcept;
  // Waits until all bytes are written, at most `max_wait_ms`.
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

  std::condition_variable* changed_;  // never destroyed; a forked child gets a new one
  std::deque<Piece> queue_;
  std::deque<Piece> lost_;  // in a forked child: pieces that the parent writes
  std::uint64_t queued_bytes_ = 0;
  bool is_running_ = false;
  bool is_writing_ = false;
};

}  // namespace tfrfast
