// The bytes of one shard's index, as in docs/index-format.md: an entry, and sections.
// folder_format.h defines the file around them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/crc32c/crc32c.h"
#include "core/index/index_bytes.h"
#include "core/index/shard_index.h"
#include "core/storage/local/sidecar.h"

namespace tfrfast {

// A range of the file. Contents use offsets from the section's beginning, so a section can be
// moved.
struct Section {
  std::uint64_t at;
  std::uint64_t bytes;
};
inline constexpr std::uint64_t kSectionAlignment = 8;

constexpr std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment;
}

// The facts about a shard that are known before any section is read.
struct ShardEntry {
  std::uint64_t file_bytes;
  std::int64_t mtime_ns;
  VersionTag version;
  std::uint32_t compression;
  std::uint32_t flags;
  std::uint64_t stream_bytes;
  std::uint64_t record_count;
  Section offsets;            // page CRCs, padded to 8 bytes; OffsetBlock[]; residuals
  Section damage;             // DamageEntry[]
  Section seek_points;        // SeekHeader; SpanEntry[]; windows. Compressed shards only
  std::uint32_t offsets_crc;  // of the page CRCs and their padding
  std::uint32_t damage_crc;
  std::uint32_t seek_points_crc;  // of the header and the span entries
  std::uint32_t samples_crc;      // see frame_samples.h; 0 if unknown
};
static_assert(sizeof(ShardEntry) == 128);

inline constexpr std::uint32_t kSettledFlag = 1;
inline constexpr std::uint32_t kByWriterFlag = 2;
inline constexpr std::uint32_t kSamplesFlag = 4;  // samples_crc is known

struct DamageEntry {
  std::uint64_t begin;
  std::uint64_t end;
  std::uint64_t records_before;
  std::uint64_t records_lost;
  std::uint64_t kind;
};
static_assert(sizeof(DamageEntry) == 40);

struct SeekHeader {
  std::uint64_t span_count;
  std::uint64_t file_end;  // where the compressed data end or can no longer be inflated
};
static_assert(sizeof(SeekHeader) == 16);

struct SpanEntry {
  std::uint64_t end;  // in the uncompressed stream; the span begins at the previous span's end
  std::uint64_t file_offset;
  std::uint64_t window_at;  // counted from the section's beginning
  std::uint32_t window_bytes;
  std::uint32_t window_crc;
  std::uint32_t crc;
  std::uint32_t file_crc;
  std::uint64_t bits;
};
static_assert(sizeof(SpanEntry) == 48);

template <class T>
const std::uint8_t* bytes_of(const T* values) {
  return reinterpret_cast<const std::uint8_t*>(values);
}

inline ShardFacts facts_of(const ShardEntry& shard) {
  return {shard.file_bytes,
          shard.mtime_ns,
          shard.stream_bytes,
          static_cast<Compression>(shard.compression),
          shard.version,
          (shard.flags & kSettledFlag) != 0,
          (shard.flags & kByWriterFlag) != 0,
          (shard.flags & kSamplesFlag) != 0 ? std::optional(shard.samples_crc) : std::nullopt};
}

// Sets the entry's facts about the state of the shard's file. The caller updates the checksum.
inline void set_state(ShardEntry& shard, const ShardFacts& facts) {
  shard.file_bytes = facts.file_bytes;
  shard.mtime_ns = facts.mtime_ns;
  shard.version = facts.version;
  shard.flags = (facts.settled ? kSettledFlag : 0) | (facts.by_writer ? kByWriterFlag : 0) |
                (facts.samples_crc ? kSamplesFlag : 0);
  shard.samples_crc = facts.samples_crc.value_or(0);
}

}  // namespace tfrfast
