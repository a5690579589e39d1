// The facts about stored bytes that are known without reading the bytes.
#pragma once

#include <array>
#include <cstdint>

namespace tfrfast {

// Differs between files, and between a file before and after a change. Only the storage interprets
// the words. All zeros mean no version.
struct VersionTag {
  std::array<std::uint64_t, 3> words = {};
  friend bool operator==(const VersionTag&, const VersionTag&) = default;
};

// The users who may change a local file, besides root. For files elsewhere, all members are zero,
// as if only root could change the file.
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
  // Whether unchanged bytes keep their version for good. If not, the version is valid only while
  // the storage stays mounted, and must not be stored for later.
  bool version_lasts = false;
  Writers writers = {};
  friend bool operator==(const FileFacts&, const FileFacts&) = default;
};

}  // namespace tfrfast
