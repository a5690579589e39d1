#include "core/storage/cache/cache_writer.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>

#include "core/base/process.h"
#include "core/base/thread.h"

namespace tfrfast {
namespace {

constexpr std::uint64_t kMaxWaitingBytes = std::uint64_t{256} << 20;

}  // namespace

CacheWriter& CacheWriter::instance() {
  return one_per_process<CacheWriter>();
}

void CacheWriter::add(std::shared_ptr<CachedObject> object, std::uint64_t offset,
                      std::shared_ptr<const std::uint8_t> bytes, std::uint64_t count) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    if (waiting_bytes_ + count > kMaxWaitingBytes && waiting_bytes_ > 0) return;
    if (!is_running_) start_thread([this] { work(); }).detach();
    is_running_ = true;
    const auto key = std::pair(static_cast<const CachedObject*>(object.get()), offset);
    const bool is_new =
        waiting_.try_emplace(key, UnwrittenBytes{std::move(object), std::move(bytes), count})
            .second;
    if (is_new) waiting_bytes_ += count;
    changed_.notify_all();
  } catch (const std::exception&) {
    // Memory or threads are short.
  }
}

CacheWriter::Pieces::iterator CacheWriter::piece_with(const CachedObject& object,
                                                      std::uint64_t offset) {
  auto next = waiting_.upper_bound({&object, offset});
  if (next == waiting_.begin()) return waiting_.end();
  --next;
  const bool has_byte =
      next->first.first == &object && offset - next->first.second < next->second.count;
  return has_byte ? next : waiting_.end();
}

std::size_t CacheWriter::read_waiting(const CachedObject& object, std::uint64_t offset,
                                      std::uint8_t* out, std::size_t count) noexcept {
  std::shared_ptr<const std::uint8_t> bytes;
  std::uint64_t skipped = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = piece_with(object, offset);
    if (found == waiting_.end()) return 0;
    bytes = found->second.bytes;
    skipped = offset - found->first.second;
    count = static_cast<std::size_t>(std::min<std::uint64_t>(count, found->second.count - skipped));
  }
  std::memcpy(out, bytes.get() + skipped, count);
  return count;
}

bool CacheWriter::has_waiting(const CachedObject& object, std::uint64_t offset) noexcept {
  const std::lock_guard lock(mutex_);
  return piece_with(object, offset) != waiting_.end();
}

void CacheWriter::finish(int max_wait_ms) noexcept {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::milliseconds(max_wait_ms),
                    [this] { return waiting_.empty(); });
}

void CacheWriter::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !waiting_.empty(); });
    const auto next = waiting_.begin();
    UnwrittenBytes piece = next->second;
    const std::uint64_t offset = next->first.second;
    lock.unlock();
    piece.object->keep(offset, piece.bytes.get(), piece.count);
    lock.lock();
    waiting_bytes_ -= piece.count;
    waiting_.erase(next);  // `piece` still owns the bytes and the object
    if (waiting_.empty()) changed_.notify_all();
    lock.unlock();
    piece = {};
    lock.lock();
  }
}

}  // namespace tfrfast
