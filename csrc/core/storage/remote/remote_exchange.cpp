#include "core/storage/remote/remote_exchange.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

#include "core/base/foreign_call.h"
#include "core/base/fork.h"
#include "core/base/waiting.h"
#include "core/storage/cache/cache_writer.h"
#include "core/storage/cache/cached_object.h"

namespace tfrfast {
namespace {

constexpr auto kBetweenChecks = std::chrono::milliseconds(100);

constexpr const char* kNoClient =
    "nothing in this process makes requests. In Python, import tfrfast.tensorflow first, with "
    "obstore installed (pip install \"tfrfast[remote]\"). Other programs read files only.";

constinit std::mutex exchange_mutex;
constinit RemoteExchange* the_exchange = nullptr;

}  // namespace

void mend_exchange_in_child() noexcept {
  if (the_exchange != nullptr) the_exchange->lose_everything();
}

namespace {

[[maybe_unused]] const int kGuarded =
    make_fork_wait_for<RemoteExchange::mutex, mend_exchange_in_child>();

Error not_served(const RemoteRequest& request, const std::string& why) {
  return Error(ErrorKind::io, "'" + request.object->url + "' cannot be read: " + why,
               {request.object->url, {}, {}}, EIO);
}

}  // namespace

std::exception_ptr RemoteRequest::failure() const noexcept {
  if (!error) return std::make_exception_ptr(std::bad_alloc());
  return std::make_exception_ptr(*error);
}

std::mutex& RemoteExchange::mutex() noexcept {
  return exchange_mutex;
}

RemoteExchange::RemoteExchange() : over_(new std::condition_variable), why_not_served_(kNoClient) {}

RemoteExchange& RemoteExchange::instance() {
  // Never destroyed: threads may wait in the exchange until the process ends.
  static RemoteExchange* const made = [] {
    auto* const exchange = new RemoteExchange;
    const std::lock_guard lock(mutex());
    the_exchange = exchange;
    return exchange;
  }();
  return *made;
}

void RemoteExchange::start_client() {
  {
    const std::lock_guard lock(mutex());
    if (is_served_) return;
  }
  // `starter` takes Python's GIL. While Python exits, that may end the thread.
  if (void (*const starter)() = starter_.load()) call_foreign([starter] { starter(); });
}

void RemoteExchange::add(const Request& request) {
  if (!is_served_) throw not_served(*request, why_not_served_);
  request->number = ++last_number_;
  (request->is_urgent ? urgent_ : ahead_).push_back(request);
  wake_client();
}

void RemoteExchange::hurry(const Request& request) {
  if (request->is_urgent) return;
  if (request->phase != RemoteRequest::Phase::waiting) return;
  // take() skips the request's other place in the queue.
  urgent_.push_back(request);
  request->is_urgent = true;
  wake_client();
}

void RemoteExchange::stop_counting(RemoteRequest& request) noexcept {
  if (!request.is_counted) return;
  request.is_counted = false;
  ahead_bytes_ -= request.bytes;
  if (!ahead_.empty()) wake_client();
}

void RemoteExchange::let_go(const Request& request) noexcept {
  if (--request->users > 0) return;
  stop_counting(*request);
  if (request->is_over()) return;
  if (request->phase == RemoteRequest::Phase::taken) {
    try {
      abandoned_.push_back(request->number);
      wake_client();
    } catch (const std::exception&) {
      // The client will finish the request, and no reader will use the answer.
    }
  }
  request->phase = RemoteRequest::Phase::abandoned;
}

void RemoteExchange::wait_for(const Request& request, std::unique_lock<std::mutex>& lock) {
  WaitCheck* const check = wait_check();
  while (!request->is_over()) {
    over_->wait_for(lock, kBetweenChecks);
    if (request->is_over() || check == nullptr) continue;
    lock.unlock();
    check->check();
    lock.lock();
  }
}

void RemoteExchange::wake_client() noexcept {
  if (is_woken_) return;
  const char byte = 1;
  // The pipe is empty, so writing cannot fail for lack of space.
  while (::write(core_end_.get(), &byte, 1) < 0 && errno == EINTR) {
  }
  is_woken_ = true;
}

void RemoteExchange::acknowledge() noexcept {
  const std::lock_guard lock(mutex());
  if (!is_woken_) return;
  char byte;
  while (::read(client_end_.get(), &byte, 1) < 0 && errno == EINTR) {
  }
  is_woken_ = false;
}

void RemoteExchange::close_pipe() noexcept {
  client_end_.close();
  core_end_.close();
  is_woken_ = false;
}

// Returns a client's unanswered requests to the queue, under new numbers. The caller frees the
// returned memory without the lock.
std::vector<PooledBuffer> RemoteExchange::take_back() {
  std::vector<Request> taken;
  std::vector<PooledBuffer> memory;
  for (const auto& [number, each] : taken_) {
    if (!each->is_over() && !each->is_arriving) taken.push_back(each);
  }
  memory.reserve(taken.size());
  std::sort(taken.begin(), taken.end(),
            [](const Request& a, const Request& b) { return a->number < b->number; });
  for (const Request& each : taken) {
    urgent_.push_back(each);  // a reader may be waiting already
    each->is_urgent = true;
    taken_.erase(each->number);
    each->number = ++last_number_;
    each->phase = RemoteRequest::Phase::waiting;
    each->arrived = 0;
    stop_counting(*each);
    memory.push_back(std::move(each->bytes_read));
  }
  return memory;
}

int RemoteExchange::begin_serving() {
  std::unordered_map<std::uint64_t, Request> lost;
  std::vector<PooledBuffer> memory;
  const std::lock_guard lock(mutex());
  lost.swap(lost_);
  memory = take_back();
  close_pipe();
  int ends[2];
  if (::pipe(ends) != 0) {
    const int reason = errno;
    throw Error(ErrorKind::io,
                "A pipe could not be made: " + std::string(std::strerror(reason)) +
                    ". Raise the limit of open files (`ulimit -n`).",
                {}, reason);
  }
  for (const int end : ends) ::fcntl(end, F_SETFD, FD_CLOEXEC);
  client_end_ = FileDescriptor(ends[0]);
  core_end_ = FileDescriptor(ends[1]);
  is_served_ = true;
  if (!urgent_.empty() || !ahead_.empty()) wake_client();
  return client_end_.number();
}

void RemoteExchange::end_serving(const std::string& why) {
  std::vector<Request> all;
  const std::lock_guard lock(mutex());
  is_served_ = false;
  why_not_served_ = why;
  close_pipe();
  all.assign(urgent_.begin(), urgent_.end());
  all.insert(all.end(), ahead_.begin(), ahead_.end());
  for (const auto& [number, each] : taken_) {
    all.push_back(each);
    lost_.emplace(number, each);  // the client may be reading the request
  }
  urgent_.clear();
  ahead_.clear();
  taken_.clear();
  abandoned_.clear();
  for (const Request& each : all) {
    if (each->is_over()) continue;
    each->error = not_served(*each, why);
    each->phase = RemoteRequest::Phase::failed;
  }
  over_->notify_all();
}

// For a forked child, which has none of the parent's threads.
void RemoteExchange::lose_everything() noexcept {
  const auto lose = [this](const Request& each) {
    if (!each->is_over()) each->phase = RemoteRequest::Phase::abandoned;
    lost_.emplace(each->number, each);
  };
  for (const Request& each : urgent_) lose(each);
  for (const Request& each : ahead_) lose(each);
  for (const auto& [number, each] : taken_) lose(each);
  urgent_.clear();
  ahead_.clear();
  taken_.clear();
  abandoned_.clear();
  starter_.store(nullptr);
  is_served_ = false;
  why_not_served_ =
      "this process was forked by something other than Python, so it has no client of its own. "
      "Start it with Python's multiprocessing, or open the data in it.";
  close_pipe();
  // The old condition may count threads that do not exist here.
  over_ = new std::condition_variable;
}

RemoteExchange::TakenRequest RemoteExchange::take() {
  // Destroyed after the lock is released.
  std::vector<Request> passed_over;
  PooledBuffer memory;
  std::unique_lock lock(mutex());
  for (;;) {
    const bool is_ahead = urgent_.empty();
    std::deque<Request>& queue = is_ahead ? ahead_ : urgent_;
    if (queue.empty()) return {};
    const Request& request = passed_over.emplace_back(queue.front());
    const bool is_stale =
        request->phase != RemoteRequest::Phase::waiting || (is_ahead && request->is_urgent);
    const bool is_counted = !is_stale && is_ahead;
    if (is_counted && ahead_bytes_ > 0 && ahead_bytes_ + request->bytes > kMaxAheadBytes) {
      return {};
    }
    // If memory for this entry runs out, the request is still in the queue.
    if (!is_stale) taken_.emplace(request->number, request);
    queue.pop_front();
    if (is_stale) continue;
    if (is_counted) ahead_bytes_ += request->bytes;
    request->is_counted = is_counted;
    request->phase = RemoteRequest::Phase::taken;
    const std::uint64_t number = request->number;
    if (request->kind != RemoteRequest::Kind::read) return {request, number};
    lock.unlock();
    try {
      memory = PooledBuffer(static_cast<std::size_t>(std::max<std::uint64_t>(request->bytes, 1)));
      lock.lock();
      if (request->number != number) continue;  // another client has taken the request
      request->bytes_read = std::move(memory);
      return {request, number};
    } catch (const std::exception&) {
      try {
        fail(number,
             Error(ErrorKind::memory,
                   "There is no memory for the " + std::to_string(request->bytes) + " bytes from " +
                       std::to_string(request->offset) + " on of '" + request->object->url + "'.",
                   {request->object->url, {}, static_cast<std::int64_t>(request->offset)}));
      } catch (const std::exception&) {
        fail_for_memory(number);
      }
      lock.lock();
    }
  }
}

std::optional<std::uint64_t> RemoteExchange::take_abandoned() {
  const std::lock_guard lock(mutex());
  if (abandoned_.empty()) return {};
  const std::uint64_t number = abandoned_.back();
  abandoned_.pop_back();
  return number;
}

// Null for an unknown number.
RemoteExchange::Request RemoteExchange::find_taken(std::uint64_t number) const {
  const auto found = taken_.find(number);
  return found == taken_.end() ? nullptr : found->second;
}

void RemoteExchange::finish(const Request& request, RemoteRequest::Phase how) {
  taken_.erase(request->number);
  if (request->is_over()) return;  // abandoned, or too late
  request->phase = how;
  over_->notify_all();
}

void RemoteExchange::receive(std::uint64_t number, std::uint64_t at, const void* bytes,
                             std::uint64_t count) {
  Request request;  // destroyed after the lock is released
  std::unique_lock lock(mutex());
  request = find_taken(number);
  if (request == nullptr || request->is_arriving) return;
  if (at != request->arrived || count > request->bytes - at) {
    request->error = not_served(*request, "the client handed in bytes " + std::to_string(at) +
                                              " to " + std::to_string(at + count) + " of " +
                                              std::to_string(request->bytes) + ", of which " +
                                              std::to_string(request->arrived) + " had come.");
    return finish(request, RemoteRequest::Phase::failed);
  }
  // No other thread touches the memory before `phase` says that it is filled. Meanwhile the request
  // stays among the taken requests, so that a child forked now knows the request.
  request->is_arriving = true;
  lock.unlock();
  std::memcpy(request->bytes_read.data() + at, bytes, count);
  const bool is_whole = at + count == request->bytes;
  if (is_whole && request->cache != nullptr) {
    CacheWriter::instance().add(request->cache, request->offset,
                                {request, request->bytes_read.data()}, request->bytes);
  }
  lock.lock();
  request->is_arriving = false;
  request->arrived = at + count;
  if (is_whole) finish(request, RemoteRequest::Phase::done);
}

void RemoteExchange::finish_examination(std::uint64_t number, const FileFacts& facts,
                                        std::string version) {
  Request request;  // destroyed after the lock is released
  const std::lock_guard lock(mutex());
  request = find_taken(number);
  if (request == nullptr) return;
  request->facts = facts;
  request->version = std::move(version);
  finish(request, RemoteRequest::Phase::done);
}

void RemoteExchange::fail_for_memory(std::uint64_t number) noexcept {
  Request request;  // destroyed after the lock is released
  const std::lock_guard lock(mutex());
  request = find_taken(number);
  if (request == nullptr) return;
  request->is_arriving = false;
  finish(request, RemoteRequest::Phase::failed);
}

void RemoteExchange::fail_next_for_memory() noexcept {
  Request request;  // destroyed after the lock is released
  const std::lock_guard lock(mutex());
  std::deque<Request>& queue = urgent_.empty() ? ahead_ : urgent_;
  if (queue.empty()) return;
  request = std::move(queue.front());
  queue.pop_front();
  if (request->phase == RemoteRequest::Phase::waiting) {
    finish(request, RemoteRequest::Phase::failed);
  }
}

void RemoteExchange::fail(std::uint64_t number, const Error& error) {
  Request request;  // destroyed after the lock is released
  const std::lock_guard lock(mutex());
  request = find_taken(number);
  if (request == nullptr) return;
  ErrorPlace place{request->object->url, {}, {}};
  if (request->kind == RemoteRequest::Kind::read) {
    place.offset = static_cast<std::int64_t>(request->offset);
  }
  request->error.emplace(error.kind(), error.message(), std::move(place), error.system_error());
  finish(request, RemoteRequest::Phase::failed);
}

}  // namespace tfrfast
