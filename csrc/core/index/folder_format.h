// The bytes of a folder's index, as docs/index-format.md describes them: a header, a directory of
// the shards (entries, then their names), and the sections of one shard after those of another.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/index/index_format.h"

namespace tfrfast {

inline constexpr std::uint32_t kFolderVersion = 1;

struct FolderHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t directory_crc;
  std::uint64_t index_bytes;  // of this whole file
  std::uint64_t shard_count;
  std::uint64_t directory_bytes;  // it follows this header
  std::uint64_t zeros[2];
  std::uint32_t zero;
  std::uint32_t header_crc;  // of all header bytes before it
};
static_assert(sizeof(FolderHeader) == 64);

struct DirectoryEntry {
  ShardEntry shard;       // its places count from the beginning of `sections`
  Section sections;       // all of the shard's
  std::uint64_t name_at;  // from the first name
  std::uint32_t name_bytes;
  std::uint32_t zero;
};
static_assert(sizeof(DirectoryEntry) == 160);

inline std::uint32_t crc_of(const FolderHeader& header) {
  return crc32c(bytes_of(&header), offsetof(FolderHeader, header_crc));
}

}  // namespace tfrfast
