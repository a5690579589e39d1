// The bytes of a folder's index, as in docs/index-format.md: a header, then parts. A part has a
// header, a directory of shards (entries, then names), and the sections of these shards.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/index/index_format.h"

namespace tfrfast {

inline constexpr std::uint32_t kFolderVersion = 2;

// Written in place after each new part, as the last step.
struct FolderHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t zero;
  std::uint64_t end;        // end of the last part; later bytes do not count
  std::uint64_t last_part;  // begin of the last part
  std::uint64_t part_count;
  std::uint64_t first_shards;  // shards in the first part
  std::uint64_t zeros;
  std::uint32_t more_zeros;
  std::uint32_t header_crc;  // of all earlier header bytes
};
static_assert(sizeof(FolderHeader) == 64);

struct PartHeader {
  std::uint64_t bytes;     // size of the whole part, a multiple of 8
  std::uint64_t previous;  // begin of the previous part; 0 in the first part
  std::uint64_t shard_count;
  std::uint64_t directory_bytes;  // the directory follows this header
  std::uint32_t directory_crc;
  std::uint32_t header_crc;  // of all earlier header bytes
};
static_assert(sizeof(PartHeader) == 40);

struct DirectoryEntry {
  ShardEntry shard;  // places count from the beginning of `sections`
  // all sections of the shard; in the file, `at` counts from the part's beginning
  Section sections;
  std::uint64_t data;     // the shard's data folder; see index_places.h
  std::uint32_t name_at;  // counted from the first name
  std::uint32_t name_bytes;
};
static_assert(sizeof(DirectoryEntry) == 160);

inline std::uint32_t crc_of(const FolderHeader& header) {
  return crc32c(bytes_of(&header), offsetof(FolderHeader, header_crc));
}
inline std::uint32_t crc_of(const PartHeader& header) {
  return crc32c(bytes_of(&header), offsetof(PartHeader, header_crc));
}

}  // namespace tfrfast
