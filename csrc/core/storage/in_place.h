// Files of this machine that are looked at, cut or changed where they lie, rather than replaced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace tfrfast {

// The first bytes of a regular file, if it has so many. A link is none, and to look is not to use:
// the time of the last use stays.
bool peek(const std::string& path, void* bytes, std::size_t count) noexcept;

// Reads the first bytes and, if `change` says so, writes them back. Whether that was done.
bool change_beginning(const std::string& path, void* bytes, std::size_t count,
                      const std::function<bool()>& change);

void cut_file(const std::string& path, std::uint64_t bytes);  // throws Error io

}  // namespace tfrfast
