// Writes fetched bytes into caches, on a thread of its own. Neither the network nor the requesting
// readers wait for the disk. Until bytes are written, this process reads them from memory.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

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
  // Copies bytes from `offset` on as far as one piece has them. Returns their number.
  std::size_t read_waiting(const CachedObject& object, std::uint64_t offset, std::uint8_t* out,
                           std::size_t count) noexcept;
  bool has_waiting(const CachedObject& object, std::uint64_t offset) noexcept;
  // Waits until all bytes are written, at most `max_wait_ms`.
  void finish(int max_wait_ms) noexcept;

 private:
  struct UnwrittenBytes {
    std::shared_ptr<CachedObject> object;
    std::shared_ptr<const std::uint8_t> bytes;
    std::uint64_t count = 0;
  };
  using Pieces =
      std::map<std::pair<const CachedObject*, std::uint64_t>, UnwrittenBytes>;  // by offset
  Pieces::iterator piece_with(const CachedObject& object, std::uint64_t offset);
  void work();

  std::mutex mutex_;  // guards the other members
  std::condition_variable changed_;
  Pieces waiting_;  // with the piece that is being written
  std::uint64_t waiting_bytes_ = 0;
  bool is_running_ = false;
};

}  // namespace tfrfast
