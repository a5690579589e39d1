// What is known about stored bytes without reading them.
#pragma once

#include <array>
#include <cstdint>

namespace tfrfast {

// Tells bytes from other bytes, and from themselves after a change: whatever changes them changes
// it. Its words mean something to the storage only; all zeros say nothing.
struct VersionTag {
  std::array<std::uint64_t, 3> words = {};
  friend bool operator==(const VersionTag&, const VersionTag&) = default;
};

struct FileFacts {
  std::uint64_t bytes = 0;
  std::int64_t mtime_ns = 0;
  VersionTag version = {};
  // Whether bytes that nobody changes keep their version for good. Where they do not, it holds for
  // as long as the storage stays mounted, and what is kept for later must not rely on it.
  bool version_lasts = false;
  std::uint32_t owner = 0;  // a user of this machine; 0 where only trusted ones can write
  friend bool operator==(const FileFacts&, const FileFacts&) = default;
};

}  // namespace tfrfast
