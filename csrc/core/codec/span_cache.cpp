#include "core/codec/span_cache.h"

#include "core/base/fork.h"
#include "core/base/setting.h"

namespace tfrfast {
namespace {

constexpr std::size_t kDefaultBytes = std::size_t{256} << 20;

}  // namespace

SpanCache::SpanCache()
    : made_(std::make_unique<std::condition_variable>()),
      max_bytes_(static_cast<std::size_t>(setting("TFRFAST_INFLATED_BYTES", kDefaultBytes))) {
  // A forked child must not wait for spans that only its parent's threads were making.
  constexpr auto mutex = []() -> std::mutex& { return instance().mutex_; };
  constexpr auto mend = [] { instance().forget_unfinished(); };
  make_fork_wait_for<mutex, mend>();
}

SpanCache& SpanCache::instance() {
  static auto* const cache = new SpanCache;  // outlives every static that may still read
  return *cache;
}

void SpanCache::forget_unfinished() noexcept {
  std::erase_if(entries_, [](const auto& each) { return each.second.span == nullptr; });
  // The condition variable counts the parent's waiting threads. Its destructor would wait for them.
  (void)made_.release();
  made_ = std::make_unique<std::condition_variable>();
}

std::uint64_t SpanCache::new_owner() {
  const std::lock_guard lock(mutex_);
  return ++owners_;
}

void SpanCache::forget(std::uint64_t owner) noexcept {
  std::vector<SharedSpan> freed;  // destroyed after the lock is released
  const std::lock_guard lock(mutex_);
  for (auto at = entries_.lower_bound({owner, 0}); at != entries_.end() && at->first.first == owner;
       at = entries_.erase(at)) {
    bytes_ -= at->second.span->bytes;
    recent_.erase(at->second.recent);
    freed.push_back(std::move(at->second.span));
  }
}

SharedSpan SpanCache::get(std::uint64_t owner, std::size_t number, std::size_t max_bytes,
                          const std::function<SharedSpan()>& make,
                          const std::function<void()>& while_waiting) {
  const Key key{owner, number};
  bool waited = false;
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) break;
    if (found->second.span != nullptr) {
      recent_.splice(recent_.begin(), recent_, found->second.recent);
      return found->second.span;
    }
    if (!waited) {
      waited = true;
      lock.unlock();
      while_waiting();
      lock.lock();
      continue;
    }
    made_->wait(lock);
  }
  entries_.emplace(key, KeptSpan{});
  lock.unlock();
  SharedSpan span;
  try {
    span = make();
  } catch (...) {
    lock.lock();
    entries_.erase(key);
    made_->notify_all();
    throw;
  }
  lock.lock();
  keep(key, max_bytes, span, lock);
  return span;
}

bool SpanCache::has(std::uint64_t owner, std::size_t number) {
  const std::lock_guard lock(mutex_);
  return entries_.contains({owner, number});
}

void SpanCache::put(std::uint64_t owner, std::size_t number, std::size_t max_bytes,
                    SharedSpan span) {
  std::unique_lock lock(mutex_);
  const Key key{owner, number};
  if (entries_.emplace(key, KeptSpan{}).second) keep(key, max_bytes, std::move(span), lock);
}

void SpanCache::put_if_room(std::uint64_t owner, std::size_t number, SharedSpan span) {
  std::unique_lock lock(mutex_);
  const Key key{owner, number};
  if (bytes_ + span->bytes > max_bytes_) return;
  if (entries_.emplace(key, KeptSpan{}).second) keep(key, max_bytes_, std::move(span), lock);
}

// Stores the span, and drops the least recently used spans beyond the limit.
void SpanCache::keep(const Key& key, std::size_t max_bytes, SharedSpan span,
                     std::unique_lock<std::mutex>& lock) {
  // In a child forked meanwhile, the entry is gone.
  KeptSpan& entry = entries_[key];
  bytes_ += span->bytes;
  entry.span = std::move(span);
  recent_.push_front(key);
  entry.recent = recent_.begin();
  const std::vector<SharedSpan> dropped = taken_out(max_bytes);
  made_->notify_all();
  lock.unlock();
}

// Takes out the least recently used spans beyond the limit, except the last span.
std::vector<SharedSpan> SpanCache::taken_out(std::size_t max_bytes) {
  std::vector<SharedSpan> spans;
  while (bytes_ > max_bytes && recent_.size() > 1) {
    const auto oldest = entries_.find(recent_.back());
    bytes_ -= oldest->second.span->bytes;
    spans.push_back(std::move(oldest->second.span));
    entries_.erase(oldest);
    recent_.pop_back();
  }
  return spans;
}

}  // namespace tfrfast
