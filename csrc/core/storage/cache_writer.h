// Writes what has come from the network into caches, on a thread of its own: the network does not
// wait for the disk, nor does who has asked for it. Others who want it from the cache do, a little.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "core/base/process.h"
#include "core/storage/remote_exchange.h"

namespace tfrfast {

// One for the process. If the disk cannot keep up, some of what has come is not kept, and comes
// again when it is needed. A forked child has a writer of its own.
class CacheWriter {
 public:
  using Request = std::shared_ptr<const RemoteRequest>;

  static CacheWriter& instance();
  static std::mutex& mutex() noexcept;

  // Takes an answered request whose bytes go to its cache. Never fails: in need, it drops it.
  void add(Request request) noexcept;
  // Waits until everything is written, but no longer than that.
  void finish(int max_wait_ms) noexcept;

 private:
  friend void mend_cache_writer_in_child() noexcept;
  CacheWriter() : changed_(new std::condition_variable) {}
  void work();

  std::condition_variable* changed_;  // never destroyed: a forked child gets another one
  std::deque<Request> queue_;
  std::deque<Request> lost_;  // in a fork: the parent writes them
  std::uint64_t queued_bytes_ = 0;
  bool is_running_ = false;
  bool is_writing_ = false;
};

}  // namespace tfrfast
