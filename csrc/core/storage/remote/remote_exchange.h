// Requests for objects on a network. The core opens no connections. Its threads leave requests in
// the exchange and wait. A client outside the core takes the requests, and hands in the answers
// (remote_client.h).
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/error.h"
#include "core/base/pool.h"
#include "core/storage/file_facts.h"
#include "core/storage/local/file_descriptor.h"
#include "core/storage/storage_traits.h"

namespace tfrfast {

class CachedObject;

// The max bytes that the whole process reads ahead of their use.
inline constexpr std::uint64_t kMaxAheadBytes = std::uint64_t{256} << 20;

inline constexpr StorageTraits kRemoteTraits = {
    true, 64 << 10, std::size_t{8} << 20, 64, kMaxAheadBytes,
};

// Identifies an object: its place, the options to reach it (for the client, without secrets), and
// the version found at opening. The version is empty before.
struct RemoteName {
  std::string url;
  std::string access;
  std::string version;
};

// A request and its answer. The exchange's lock guards the members, except that `bytes_read` never
// changes once `phase` is `done`.
struct RemoteRequest {
  enum class Kind : std::uint8_t { examine, read };
  enum class Phase : std::uint8_t {
    waiting,    // for the client
    taken,      // by the client
    done,       // answered
    failed,     // see `failure()`
    abandoned,  // no longer wanted, or lost in a fork
  };

  Kind kind = Kind::read;
  std::uint64_t number = 0;
  std::shared_ptr<const RemoteName> object;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  bool is_urgent = false;     // a reader waits
  bool is_counted = false;    // the memory counts as read ahead
  bool is_arriving = false;   // bytes are being copied, without the lock
  std::uint64_t arrived = 0;  // copied bytes
  int users = 0;  // readers that may still want the answer; without users, the request is abandoned

  Phase phase = Phase::waiting;
  PooledBuffer bytes_read;     // of a read; allocated when taken
  std::optional<Error> error;  // of a failed request, unless memory ran out
  FileFacts facts;             // of an examination
  std::string version;         // of an examination
  // Keeps the bytes of a read. Null without a cache.
  std::shared_ptr<CachedObject> cache;

  RemoteRequest() = default;
  RemoteRequest(const RemoteRequest&) = delete;
  RemoteRequest& operator=(const RemoteRequest&) = delete;

  std::exception_ptr failure() const noexcept;
  bool is_over() const noexcept { return phase != Phase::waiting && phase != Phase::taken; }
};

// One per process. In a forked child, a new client serves, and unanswered requests of the parent
// are lost.
class RemoteExchange {
 public:
  using Request = std::shared_ptr<RemoteRequest>;
  // A request, and the number under which it will be answered.
  struct TakenRequest {
    Request request;
    std::uint64_t number = 0;
  };

  static RemoteExchange& instance();

  // Guards the exchange, all requests, and the files' pieces. fork() waits for the mutex. A thread
  // that holds the mutex must not wait, and must not destroy a request: pooled memory has a lock,
  // too.
  static std::mutex& mutex() noexcept;

  // Call the functions below with the lock held.

  // Hands a request to the client: at once if urgent, otherwise when memory for its bytes is free.
  // Throws Error if no client serves.
  void add(const Request& request);
  // A reader waits for the request now.
  void hurry(const Request& request);
  // The request loses a user. Without users, a request that is not over is abandoned.
  void let_go(const Request& request) noexcept;
  // From now on the request's memory does not count as read ahead, so other requests may follow.
  void stop_counting(RemoteRequest& request) noexcept;

  // Waits until the request is over. Releases the lock meanwhile. Throws the exceptions of the
  // thread's WaitCheck.
  void wait_for(const Request& request, std::unique_lock<std::mutex>& lock);

  // Call without the lock, before opening an object. Starts a client unless one serves, if
  // start_with() was called.
  void start_client();

  // The client calls the functions below, without the lock.

  // A client begins to serve. Returns a descriptor that is readable while requests can be taken.
  // The next call makes a new descriptor. Throws Error io. A replaced client keeps nothing: its
  // unanswered requests can be taken again, and its late answers are ignored.
  int begin_serving();
  // The client ends. All requests, also later ones, fail with this text until another client
  // begins.
  void end_serving(const std::string& why);

  void start_with(void (*starter)()) noexcept { starter_.store(starter); }

  // The next request, urgent requests first. Null if no request should be made now.
  TakenRequest take();
  // A request that was taken and is no longer wanted.
  std::optional<std::uint64_t> take_abandoned();
  // Empties the descriptor. Call before take().
  void acknowledge() noexcept;

  // Hands in the next bytes of a read, `at` bytes after its first. The last bytes complete the
  // read.
  void receive(std::uint64_t number, std::uint64_t at, const void* bytes, std::uint64_t count);
  void finish_examination(std::uint64_t number, const FileFacts& facts, std::string version);
  void fail(std::uint64_t number, const Error& error);
  // After any other call of the client threw for lack of memory: the taken request fails or, after
  // take(), the next one. Whoever waits for it gets std::bad_alloc.
  void fail_for_memory(std::uint64_t number) noexcept;
  void fail_next_for_memory() noexcept;

 private:
  friend void mend_exchange_in_child() noexcept;
  RemoteExchange();

  void wake_client() noexcept;
  Request find_taken(std::uint64_t number) const;
  void finish(const Request& request, RemoteRequest::Phase how);
  void close_pipe() noexcept;
  std::vector<PooledBuffer> take_back();
  void lose_everything() noexcept;

  std::condition_variable* over_;  // never destroyed; a forked child gets a new one
  std::deque<Request> urgent_;
  std::deque<Request> ahead_;
  std::unordered_map<std::uint64_t, Request> taken_;
  std::vector<std::uint64_t> abandoned_;
  // Lost in a fork, or when the client ended, and not destroyed yet.
  std::unordered_map<std::uint64_t, Request> lost_;
  std::uint64_t ahead_bytes_ = 0;  // memory of requests for which no reader waits yet
  std::uint64_t last_number_ = 0;
  std::atomic<void (*)()> starter_ = nullptr;
  bool is_served_ = false;
  bool is_woken_ = false;
  std::string why_not_served_;
  FileDescriptor client_end_, core_end_;  // of a pipe
};

}  // namespace tfrfast
