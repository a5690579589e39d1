#include "core/storage/cache/cache_writer.h"

#include <chrono>
#include <exception>
#include <utility>

#include "core/base/process.h"
#include "core/base/thread.h"

namespace tfrfast {
namespace {

constexpr std::uint64_t kMaxQueuedBytes = std::uint64_t{256} << 20;

}  // namespace

CacheWriter& CacheWriter::instance() {
  return one_per_process<CacheWriter>();
}

void CacheWriter::add(std::shared_ptr<CachedObject> object, std::uint64_t offset,
                      std::shared_ptr<const std::uint8_t> bytes, std::uint64_t count) noexcept {
  object->count_fetched(count);
  try {
    const std::lock_guard lock(mutex_);
    if (queued_bytes_ + count <= kMaxQueuedBytes || queued_bytes_ == 0) {
      if (!is_running_) start_thread([this] { work(); }).detach();
      is_running_ = true;
      queue_.push_back({object, std::move(bytes), offset, count});
      queued_bytes_ += count;
      changed_.notify_all();
      return;
    }
  } catch (const std::exception&) {
    // Memory or threads are short.
  }
  // Other processes need not wait for these bytes.
  object->release(offset, count);
}

void CacheWriter::finish(int max_wait_ms) noexcept {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::milliseconds(max_wait_ms),
                    [this] { return queued_bytes_ == 0; });
}

void CacheWriter::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !queue_.empty(); });
    Piece piece = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    const std::uint64_t count = piece.count;
    piece.object->keep(piece.offset, piece.bytes.get(), count);
    piece = {};
    lock.lock();
    queued_bytes_ -= count;
    if (queued_bytes_ == 0) changed_.notify_all();
  }
}

}  // namespace tfrfast
