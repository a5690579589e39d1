// What is known about stored bytes without reading them.
#pragma once

#include <array>
#include <cstdint>

namespace tfrfast {

// Differs between files, and between a file and the same file after a change. Only the storage
// knows what the words mean. All zeros say nothing.
struct VersionTag {
  std::array<std::uint64_t, 3> words = {};
  friend bool operator==(const VersionTag&, const VersionTag&) = default;
};

// The users who may change a file of this machine, other than root. Root alone may change what lies
// elsewhere, as far as this tells.
struct Writers {
  std::uint32_t owner = 0;
  std::uint32_t group = 0;
  bool group_may_write = false;
  bool all_may_write = false;
  friend bool operator==(const Writers&, const Writers&) = default;
};

struct FileFacts {
  std::uint64_t bytes = 0;
  std::int64_t mtime_ns = 0;
  VersionTag version = {};
  // Whether bytes that do not change keep their version for good. If not, it holds only while the
  // storage stays mounted, and nothing that is kept for later may rely on it.
  bool version_lasts = false;
  Writers writers = {};
  friend bool operator==(const FileFacts&, const FileFacts&) = default;
};

}  // namespace tfrfast
