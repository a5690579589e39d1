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

// If the disk cannot keep up, some fetched bytes are dropped, and fetched again when needed.
class CacheWriter {
 public:
  // One per process. A forked child begins with a writer that has nothing to write.
  static CacheWriter& instance();

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
  void work();

  std::mutex mutex_;  // guards the other members
  std::condition_variable changed_;
  std::deque<Piece> queue_;
  std::uint64_t queued_bytes_ = 0;  // with the piece that is being written
  bool is_running_ = false;
};

}  // namespace tfrfast
