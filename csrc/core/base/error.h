// The one exception that the core throws, and its kinds. Bindings have an exception for each kind.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>

namespace tfrfast {

enum class ErrorKind : std::uint8_t {
  corrupt,       // bytes contradict a checksum or the format
  truncated,     // the shard ends inside a frame: its writer died, or a copy was cut short
  stale_index,   // the shard is not the one its index describes
  io,            // the operating system refused; `system_error` is its errno
  invalid,       // the caller's argument has no meaning
  out_of_range,  // a record number that does not exist
  closed,        // used after close
  feature,       // a record does not fit the feature description
  memory,        // more is asked for than memory can hold
};

// The shard, the record and the byte that an error is about. Those that do not apply stay empty.
struct ErrorPlace {
  std::string path;
  std::optional<std::int64_t> record;  // global or shard-local, as the thrower's message says
  std::optional<std::int64_t> offset;  // bytes from the start of the (uncompressed) shard
};

// `message` is complete: what is wrong and where, what was expected, what was found, what to do.
// Bindings pass it on unchanged. It holds names from strangers, so all of it is made printable();
// `place` has them as they are.
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

// An `io` error: "<action> '<path>' failed: <strerror>. <advice>".
[[noreturn]] void throw_system_error(int system_error, const std::string& action,
                                     const std::string& path, const std::string& advice = "");

}  // namespace tfrfast
