// The bytes of a folder's index, as docs/index-format.md describes them: a header, and parts that
// follow each other. A part has a header of its own, a directory of shards (entries, then their
// names), and the sections of these shards.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/index/index_format.h"

namespace tfrfast {

inline constexpr std::uint32_t kFolderVersion = 2;

// Written in place after each new part, and last.
struct FolderHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t zero;
  std::uint64_t end;        // where the last part ends; what follows counts as nothing
  std::uint64_t last_part;  // where it begins
  std::uint64_t part_count;
  std::uint64_t first_shards;  // how many shards the first part has
  std::uint64_t zeros;
  std::uint32_t more_zeros;
  std::uint32_t header_crc;  // of all header bytes before it
};
static_assert(sizeof(FolderHeader) == 64);

struct PartHeader {
  std::uint64_t bytes;     // of the whole part, a multiple of 8
  std::uint64_t previous;  // where the part before it begins; 0 in the first one
  std::uint64_t shard_count;
  std::uint64_t directory_bytes;  // it follows this header
  std::uint32_t directory_crc;
  std::uint32_t header_crc;  // of all header bytes before it
};
static_assert(sizeof(PartHeader) == 40);

struct DirectoryEntry {
  ShardEntry shard;       // its places count from the beginning of `sections`
  Section sections;       // all of the shard's; in the file, counted from the part's beginning
  std::uint64_t data;     // which data folder the shard lies in; see index_places.h
  std::uint32_t name_at;  // from the first name
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
