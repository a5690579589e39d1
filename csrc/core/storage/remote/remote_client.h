// What a client outside the core needs to make the requests of RemoteExchange: a table of plain C
// functions, which Python calls through ctypes. Each library that contains the core has its own
// exchange and its own table, and one client serves them all.
#pragma once

#include <cstdint>

namespace tfrfast {

// Strings end with a null, are UTF-8 and live until the request is answered or, after end(), until
// the next client begins.
struct ClientRequest {
  std::uint64_t number;
  std::uint64_t offset;
  std::uint64_t bytes;  // 0: the object itself is asked for, its size and its version
  const char* url;
  const char* access;
  const char* version;  // as the client has described it
};

struct ClientFacts {
  std::uint64_t bytes;
  std::int64_t mtime_ns;       // 0 if it is not known
  std::uint64_t version[3];    // a hash of whatever changes with every change
  std::int32_t version_lasts;  // whether there is such a thing
  std::int32_t zero;
};

// What makes a client begin to serve, if none does. It returns when one does, or when it is known
// why none can, which it has said with end().
using ClientStarter = void (*)();

// Safe from many threads. None of them waits, and none calls the client.
struct ClientTable {
  // A descriptor that can be read while there is something to take, or -1. Another client may call
  // this while one serves, which it replaces: what that one has not answered can be taken again.
  std::int32_t (*begin)() noexcept;
  void (*end)(const char* why) noexcept;
  // Whether there was something to take. Call acknowledge() before the first one of a row.
  void (*acknowledge)() noexcept;
  std::int32_t (*take)(ClientRequest* request) noexcept;
  // The number of a request that was taken and is no longer wanted, or 0.
  std::uint64_t (*take_abandoned)() noexcept;
  // The next bytes of a read, `at` bytes after its first. It is answered when all are there.
  void (*receive)(std::uint64_t number, std::uint64_t at, const void* bytes,
                  std::uint64_t count) noexcept;
  void (*finish_facts)(std::uint64_t number, const ClientFacts* facts,
                       const char* version) noexcept;
  // `code` 0: it cannot be read, `system_error` is an errno; 1: the object was replaced; 2: the
  // request has no meaning.
  void (*fail)(std::uint64_t number, std::int32_t code, std::int32_t system_error,
               const char* message) noexcept;
  // Whoever opens an object while there is no client calls this first, without locks. Null: nobody
  // does. It is forgotten in a forked child.
  void (*start_with)(ClientStarter starter) noexcept;
  // What a listing has said about an object that will probably be opened, after forget_listed() for
  // the listing before.
  void (*expect)(const char* url, const char* access, const ClientFacts* facts,
                 const char* version) noexcept;
  void (*forget_listed)() noexcept;
};

const ClientTable& client_table() noexcept;

}  // namespace tfrfast
