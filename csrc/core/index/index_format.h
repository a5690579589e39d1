// An index file's bytes, as docs/index-format.md describes them. Writing, loading and stamping an
// index share this.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/crc32c/crc32c.h"
#include "core/index/shard_index.h"

namespace tfrfast {

static_assert(std::endian::native == std::endian::little, "offsets are mapped as they lie");

inline constexpr char kIndexMagic[8] = {'T', 'F', 'R', 'F', 'I', 'D', 'X', '\n'};
inline constexpr std::uint32_t kIndexVersion = 3;
// Begins the proofs of index_state.h, which are in the cache among indexes.
inline constexpr char kProofMagic[8] = {'T', 'F', 'R', 'F', 'P', 'R', 'F', '\n'};

// The file begins with this, little-endian. Sections follow where it says.
struct IndexHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t compression;
  std::uint64_t file_bytes;
  std::int64_t mtime_ns;
  std::uint64_t stream_bytes;
  std::uint64_t record_count;
  std::uint64_t damage_count;
  std::uint64_t damage_at;      // DamageEntry[damage_count]
  std::uint64_t block_crcs_at;  // u32[number of blocks]
  std::uint64_t offsets_at;     // u64[record_count + 1]
  std::uint64_t index_bytes;    // of this whole file
  std::uint32_t block_offsets;  // offsets a block
  std::uint32_t sections_crc;   // of the damage entries and the block CRCs
  std::uint64_t spans_at;       // SpanEntry[span_count]; the next four for compressed shards only
  std::uint64_t span_count;
  std::uint64_t file_end;   // where the compressed data end or can no longer be inflated
  std::uint32_t spans_crc;  // of the span entries
  std::uint32_t flags;
  VersionTag shard_version;
  std::uint32_t zero;
  std::uint32_t header_crc;  // of all header bytes before it
};
static_assert(sizeof(IndexHeader) == 160);

inline constexpr std::uint32_t kSettledFlag = 1;
inline constexpr std::uint32_t kByWriterFlag = 2;

struct SpanEntry {
  std::uint64_t end;  // in the uncompressed stream; it begins where the one before ends
  std::uint64_t file_offset;
  std::uint64_t window_at;
  std::uint32_t window_bytes;
  std::uint32_t window_crc;
  std::uint32_t crc;
  std::uint32_t file_crc;
  std::uint64_t bits;
};
static_assert(sizeof(SpanEntry) == 48);

// More than 32 KiB can take when they do not compress.
inline constexpr std::uint32_t kMaxWindowBytes = 34 << 10;

struct DamageEntry {
  std::uint64_t begin;
  std::uint64_t end;
  std::uint64_t records_before;
  std::uint64_t records_lost;
  std::uint64_t kind;
};
static_assert(sizeof(DamageEntry) == 40);

template <class T>
const std::uint8_t* bytes_of(const T* values) {
  return reinterpret_cast<const std::uint8_t*>(values);
}

inline std::uint32_t crc_of(const IndexHeader& header) {
  return crc32c(bytes_of(&header), offsetof(IndexHeader, header_crc));
}

inline ShardFacts facts_of(const IndexHeader& header) {
  return {header.file_bytes,
          header.mtime_ns,
          header.stream_bytes,
          static_cast<Compression>(header.compression),
          header.shard_version,
          (header.flags & kSettledFlag) != 0,
          (header.flags & kByWriterFlag) != 0};
}

// Sets what the header says about the state of the shard's file. The caller updates the checksum.
inline void set_state(IndexHeader& header, const ShardFacts& facts) {
  header.file_bytes = facts.file_bytes;
  header.mtime_ns = facts.mtime_ns;
  header.shard_version = facts.version;
  header.flags = (facts.settled ? kSettledFlag : 0) | (facts.by_writer ? kByWriterFlag : 0);
}

}  // namespace tfrfast
