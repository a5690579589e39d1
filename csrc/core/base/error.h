// The core throws one exception, with a kind. Bindings translate each kind to an exception of their
// own.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>

namespace tfrfast {

enum class ErrorKind : std::uint8_t {
  corrupt,       // bytes contradict a checksum or the format
  truncated,     // the shard ends inside a frame: its writer died, or a copy was cut short
  stale_index,   // the shard differs from the shard that its index describes
  io,            // the operating system refused a call; `system_error` is the errno
  invalid,       // the caller's argument has no meaning
  out_of_range,  // no record has this number
  closed,        // used after close
  feature,       // a record does not fit the feature description
  memory,        // more bytes than memory can hold
};

// The shard, the record and the byte of an error. A member that does not apply is empty.
struct ErrorPlace {
  std::string path;
  std::optional<std::int64_t> record;  // global or shard-local, as the thrower's message says
  std::optional<std::int64_t> offset;  // bytes from the start of the (uncompressed) shard
};

// `message` is complete: the fault, the place, the expected and the found values, and the remedy.
// Bindings show it unchanged. Names from files and servers may hold control characters, so the
// whole message is made printable(). `place` holds the names unchanged.
class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message, ErrorPlace place = {}, int system_error = 0);

  const char* what() const noexcept override { return message_.c_str(); }
  const std::string& message() const noexcept { return message_; }
  ErrorKind kind() const noexcept { return kind_; }
  const ErrorPlace& place() const noexcept { return place_; }
  int system_error() const noexcept { return system_error_; }

 private:
  ErrorKind kind_;
  int system_error_;
  std::string message_;
  ErrorPlace place_;
};

// Throws an `io` error: "<action> '<path>' failed: <strerror>. <advice>".
[[noreturn]] void throw_system_error(int system_error, const std::string& action,
                                     const std::string& path, const std::string& advice = "");

}  // namespace tfrfast
