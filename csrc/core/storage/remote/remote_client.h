// The interface through which a client outside the core makes the requests of RemoteExchange: a
// table of plain C functions, which Python calls through ctypes. Each library that contains the
// core has its own exchange and its own table. One client serves all libraries.
#pragma once

#include <cstdint>

namespace tfrfast {

// Strings are UTF-8 and end with a null. They live until the request is answered or, after end(),
// until the next client begins.
struct ClientRequest {
  std::uint64_t number;
  std::uint64_t offset;
  std::uint64_t bytes;  // 0: examine the object, for its size and version
  const char* url;
  const char* access;
  const char* version;  // as the client described it
};

struct ClientFacts {
  std::uint64_t bytes;
  std::int64_t mtime_ns;       // 0 if unknown
  std::uint64_t version[3];    // a hash that changes with every change of the object
  std::int32_t version_lasts;  // whether the version lasts for good
  std::int32_t zero;
};

// Makes a client begin to serve, unless one serves. Returns when a client serves, or when none can
// and end() was called with the reason.
using ClientStarter = void (*)();

// Safe from many threads. No function waits, and none calls the client.
struct ClientTable {
  // Returns a descriptor that is readable while requests can be taken, or -1. A second client may
  // call begin() and replace the first: the first client's unanswered requests can be taken again.
  std::int32_t (*begin)() noexcept;
  void (*end)(const char* why) noexcept;
  // take() returns whether there was a request. Call acknowledge() before a series of take().
  void (*acknowledge)() noexcept;
  std::int32_t (*take)(ClientRequest* request) noexcept;
  // The number of a request that was taken and is no longer wanted, or 0.
  std::uint64_t (*take_abandoned)() noexcept;
  // Hands in the next bytes of a read, `at` bytes after its first. The last bytes answer the read.
  void (*receive)(std::uint64_t number, std::uint64_t at, const void* bytes,
                  std::uint64_t count) noexcept;
  void (*finish_facts)(std::uint64_t number, const ClientFacts* facts,
                       const char* version) noexcept;
  // `code` 0: the object cannot be read, `system_error` is an errno; 1: the object was replaced; 2:
  // the request has no meaning.
  void (*fail)(std::uint64_t number, std::int32_t code, std::int32_t system_error,
               const char* message) noexcept;
  // Sets the function that every opening of an object calls first, without locks, if no client
  // serves. May be null. A forked child has no such function.
  void (*start_with)(ClientStarter starter) noexcept;
  // Hands in a listing's facts about an object that will probably be opened. forget_listed()
  // forgets the previous listing.
  void (*expect)(const char* url, const char* access, const ClientFacts* facts,
                 const char* version) noexcept;
  void (*forget_listed)() noexcept;
};

const ClientTable& client_table() noexcept;

}  // namespace tfrfast
