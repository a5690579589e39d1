// Requests for objects on a network, between those who wait for them and the client that makes
// them. The core opens no connections. Its threads leave requests here and wait; a client outside
// the core takes them, and hands in the answers (remote_client.h).
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/error.h"
#include "core/base/pool.h"
#include "core/storage/file_facts.h"
#include "core/storage/storage_traits.h"

namespace tfrfast {

class CachedObject;

// At most this much is read ahead, in the whole process, before it is used.
inline constexpr std::uint64_t kMaxAheadBytes = std::uint64_t{256} << 20;

inline constexpr StorageTraits kRemoteTraits = {
    true, 64 << 10, std::size_t{8} << 20, 64, kMaxAheadBytes,
};

// What names an object: where it is, how to reach it (options for the client, without secrets), and
// the version that was found there when it was opened. Empty before that.
struct RemoteName {
  std::string url;
  std::string access;
  std::string version;
};

// One request and its answer. Its members are guarded by the exchange's lock, except that nobody
// changes `bytes_read` once `state` is `done`.
struct RemoteRequest {
  enum class Kind : std::uint8_t { examine, read };
  enum class State : std::uint8_t {
    waiting,    // for the client
    taken,      // by the client
    done,       // answered
    failed,     // `error` says why
    abandoned,  // nobody wants it any more, or it was lost in a fork
  };

  Kind kind = Kind::read;
  std::uint64_t number = 0;
  std::shared_ptr<const RemoteName> object;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  bool is_urgent = false;     // somebody waits for it
  bool is_counted = false;    // its memory counts as read ahead
  bool is_arriving = false;   // some of its bytes are being copied, without the lock
  std::uint64_t arrived = 0;  // bytes that were copied
  int users = 0;              // who may still want the answer; without any, nobody does

  State state = State::waiting;
  PooledBuffer bytes_read;  // of a read; the memory is there from the time when it is taken
  std::optional<Error> error;
  FileFacts facts;      // of an examination
  std::string version;  // of an examination
  // What keeps the bytes of a read; null if nothing does.
  std::shared_ptr<CachedObject> cache;

  RemoteRequest() = default;
  ~RemoteRequest();  // others may fetch what was not kept
  RemoteRequest(const RemoteRequest&) = delete;
  RemoteRequest& operator=(const RemoteRequest&) = delete;

  bool is_over() const noexcept { return state != State::waiting && state != State::taken; }
};

// One for the process. A forked child has a new client, and requests of its parent's that were not
// answered are lost in it.
class RemoteExchange {
 public:
  using Request = std::shared_ptr<RemoteRequest>;
  // A request, and the number that it is answered by.
  struct Taken {
    Request request;
    std::uint64_t number = 0;
  };

  static RemoteExchange& instance();

  // Guards everything here, all requests, and what files keep of them. fork() waits for it. While a
  // thread holds it, it does not wait, and it destroys no request: pooled memory has a lock, too.
  static std::mutex& mutex() noexcept;

  // Call these with the lock held.
  // -----------------------------------------------------------------

  // Hands a request to the client: at once if it is urgent, else when memory for its bytes is free.
  // Throws Error if there is no client.
  void add(const Request& request);
  // Somebody waits for it now.
  void hurry(const Request& request);
  // It has one user less. With its last one it is abandoned, unless it is over.
  void let_go(const Request& request) noexcept;
  // From now on its memory does not count as read ahead, and others may take its place.
  void stop_counting(RemoteRequest& request) noexcept;

  // Waits until the request is over. Gives the lock back meanwhile. Throws what the thread's
  // WaitCheck throws.
  void wait_for(const Request& request, std::unique_lock<std::mutex>& lock);

  // Call it without the lock, before an object is opened: starts a client if there is none, and if
  // somebody has said how.
  void start_client();

  // For the client, which calls them without the lock.
  // ---------------------------------------------

  // A client is there from now on. Returns a descriptor that can be read while there is something
  // to take. The next call makes a new one. Throws Error io. A client that is replaced by this one
  // keeps nothing: what it has taken and not answered can be taken again, and its late answers are
  // passed over.
  int begin_serving();
  // No more. All requests fail with this text, and so do later ones until another client begins.
  void end_serving(const std::string& why);

  void start_with(void (*starter)()) noexcept { starter_.store(starter); }

  // The next request, urgent ones first; null if there is none to make now.
  Taken take();
  // A request that was taken and that nobody wants any more.
  std::optional<std::uint64_t> take_abandoned();
  // Empties the descriptor. Call it before take().
  void acknowledge() noexcept;

  // The next bytes of a read, `at` bytes after its first. The read is done when all are there.
  void receive(std::uint64_t number, std::uint64_t at, const void* bytes, std::uint64_t count);
  void finish_examination(std::uint64_t number, const FileFacts& facts, std::string version);
  void fail(std::uint64_t number, const Error& error);

 private:
  friend void mend_exchange_in_child() noexcept;
  RemoteExchange();

  void wake_client() noexcept;
  Request find_taken(std::uint64_t number) const;
  void finish(const Request& request, RemoteRequest::State how);
  void close_pipe() noexcept;
  std::vector<PooledBuffer> take_back();
  void lose_everything() noexcept;

  std::condition_variable* over_;  // never destroyed: a forked child gets another one
  std::deque<Request> urgent_;
  std::deque<Request> ahead_;
  std::unordered_map<std::uint64_t, Request> taken_;
  std::vector<std::uint64_t> abandoned_;
  // In a fork, or when the client ended, and not destroyed yet.
  std::unordered_map<std::uint64_t, Request> lost_;
  std::uint64_t ahead_bytes_ = 0;  // of memory that requests hold for which nobody waits yet
  std::uint64_t last_number_ = 0;
  std::atomic<void (*)()> starter_ = nullptr;
  bool is_served_ = false;
  bool is_woken_ = false;
  std::string why_not_served_;
  int pipe_[2] = {-1, -1};
};

}  // namespace tfrfast
