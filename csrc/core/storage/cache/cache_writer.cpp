#include "core/storage/cache/cache_writer.h"

#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include "core/base/fork.h"
#include "core/base/thread.h"

namespace tfrfast {
namespace {

constexpr std::uint64_t kMaxQueuedBytes = std::uint64_t{256} << 20;

constinit std::mutex writer_mutex;
constinit CacheWriter* the_writer = nullptr;

}  // namespace

void mend_cache_writer_in_child() noexcept {
  if (the_writer == nullptr) return;
  for (CacheWriter::Piece& each : the_writer->queue_) {
    the_writer->lost_.push_back(std::move(each));
  }
  the_writer->queue_.clear();
  the_writer->queued_bytes_ = 0;
  the_writer->is_running_ = the_writer->is_writing_ = false;
  the_writer->changed_ = new std::condition_variable;
}

namespace {

[[maybe_unused]] const int kWriterIsGuarded =
    make_fork_wait_for<CacheWriter::mutex, mend_cache_writer_in_child>();

}  // namespace

std::mutex& CacheWriter::mutex() noexcept {
  return writer_mutex;
}

CacheWriter& CacheWriter::instance() {
  // Never destroyed: the writer's thread may run until the process ends.
  static CacheWriter* const made = [] {
    auto* const writer = new CacheWriter;
    const std::lock_guard lock(mutex());
    the_writer = writer;
    return writer;
  }();
  return *made;
}

void CacheWriter::add(std::shared_ptr<CachedObject> object, std::uint64_t offset,
                      std::shared_ptr<const std::uint8_t> bytes, std::uint64_t count) noexcept {
  object->count_fetched(count);
  try {
    const std::lock_guard lock(mutex());
    if (queued_bytes_ + count <= kMaxQueuedBytes || queued_bytes_ == 0) {
      if (!is_running_) start_thread([this] { work(); }).detach();
      is_running_ = true;
      queue_.push_back({object, std::move(bytes), offset, count});
      queued_bytes_ += count;
      changed_->notify_all();
      return;
    }
  } catch (const std::exception&) {
    // Memory or threads are short.
  }
  // Other processes need not wait for these bytes.
  object->release(offset, count);
}

void CacheWriter::finish(int max_wait_ms) noexcept {
  std::unique_lock lock(mutex());
  changed_->wait_for(lock, std::chrono::milliseconds(max_wait_ms),
                     [this] { return !is_running_ || (queue_.empty() && !is_writing_); });
}

void CacheWriter::work() {
  std::unique_lock lock(mutex());
  for (;;) {
    changed_->wait(lock, [this] { return !queue_.empty(); });
    Piece piece = std::move(queue_.front());
    queue_.pop_front();
    is_writing_ = true;
    lock.unlock();
    const std::uint64_t count = piece.count;
    piece.object->keep(piece.offset, piece.bytes.get(), count);
    piece = {};
    lock.lock();
    is_writing_ = false;
    queued_bytes_ -= count;
    if (queue_.empty()) changed_->notify_all();
  }
}

}  // namespace tfrfast
