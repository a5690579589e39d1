// Keeps the process's most recently used inflated spans, of all shards. Neighbouring records are
// served from memory, and no two threads inflate the same span at the same time.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/base/pool.h"

namespace tfrfast {

struct InflatedSpan {
  std::uint64_t begin = 0;  // place in the stream
  std::size_t bytes = 0;
  PooledBuffer memory;
  std::size_t lead = 0;  // bytes of the stream before `begin` that precede the span in `memory`
  mutable std::atomic<bool> is_kept{false};  // whether a Mirror has been given the span

  const std::uint8_t* data() const noexcept { return memory.data() + lead; }
};

using SharedSpan = std::shared_ptr<const InflatedSpan>;

// Safe from many threads, and across fork().
class SpanCache {
 public:
  static SpanCache& instance();

  std::uint64_t new_owner();
  void forget(std::uint64_t owner) noexcept;

  // Returns the span, made by `make` if absent. If another thread is making the span, calls
  // `while_waiting` once, then waits. Throws the exceptions of `make`. Like put(), drops the least
  // recently used spans beyond `max_bytes`, except this one.
  SharedSpan get(std::uint64_t owner, std::size_t number, std::size_t max_bytes,
                 const std::function<SharedSpan()>& make,
                 const std::function<void()>& while_waiting);
  bool has(std::uint64_t owner, std::size_t number);  // also true while a thread is making the span
  void put(std::uint64_t owner, std::size_t number, std::size_t max_bytes, SharedSpan span);
  // Keeps the span only if no other span has to be dropped.
  void put_if_room(std::uint64_t owner, std::size_t number, SharedSpan span);

  // $TFRFAST_INFLATED_BYTES, or 256 MiB if unset. A dropped span that is still in use does not
  // count.
  std::size_t max_bytes() const noexcept { return max_bytes_; }

 private:
  using Key = std::pair<std::uint64_t, std::size_t>;  // owner and span number
  struct KeptSpan {
    SharedSpan span;  // null while a thread is making the span
    std::list<Key>::iterator recent;
  };
  SpanCache();
  void keep(const Key& key, std::size_t max_bytes, SharedSpan span,
            std::unique_lock<std::mutex>& lock);
  std::vector<SharedSpan> taken_out(std::size_t max_bytes);
  void forget_unfinished() noexcept;

  std::mutex mutex_;
  std::unique_ptr<std::condition_variable> made_;
  std::map<Key, KeptSpan> entries_;
  std::list<Key> recent_;  // keys of finished entries, most recently used first
  std::size_t bytes_ = 0;
  std::uint64_t owners_ = 0;
  const std::size_t max_bytes_;
};

}  // namespace tfrfast
