// Files of this machine that are examined, cut or changed in place rather than replaced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace tfrfast {

// The first bytes of a regular file, if it has that many. A link does not count as one. The file's
// time of last use stays what it was.
bool peek(const std::string& path, void* bytes, std::size_t count) noexcept;

// Reads the first bytes, calls `change` and, if that returns true, writes them back. True if they
// were written.
bool change_beginning(const std::string& path, void* bytes, std::size_t count,
                      const std::function<bool()>& change);

void cut_file(const std::string& path, std::uint64_t bytes);  // throws Error io

}  // namespace tfrfast
