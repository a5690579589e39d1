#include "core/index/old_index_file.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "core/crc32c/crc32c.h"
#include "core/index/damage_section.h"
#include "core/index/index_format.h"
#include "core/index/index_sections.h"
#include "core/index/seek_section.h"

namespace tfrfast {
namespace {

struct OldHeader {
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
  std::uint64_t file_end;
  std::uint32_t spans_crc;  // of the span entries
  std::uint32_t flags;
  VersionTag shard_version;
  std::uint32_t zero;
  std::uint32_t header_crc;
};
static_assert(sizeof(OldHeader) == kIndexHeaderBytes);

constexpr std::uint32_t kBlockOffsets = 4096;

ShardFacts old_facts(const OldHeader& header) {
  return {header.file_bytes,
          header.mtime_ns,
          header.stream_bytes,
          static_cast<Compression>(header.compression),
          header.shard_version,
          (header.flags & kSettledFlag) != 0,
          (header.flags & kByWriterFlag) != 0};
}

template <class T>
std::uint32_t crc_of_all(std::span<const T> values, std::uint32_t crc = 0) {
  return crc32c(bytes_of(values.data()), values.size_bytes(), crc);
}

std::vector<std::uint64_t> old_offsets(const IndexBytes& bytes, const OldHeader& header,
                                       const std::vector<std::uint32_t>& block_crcs) {
  auto offsets = bytes.copy<std::uint64_t>(header.offsets_at, header.record_count + 1);
  for (std::size_t block = 0; block < block_crcs.size(); ++block) {
    const std::size_t first = block * kBlockOffsets;
    const std::size_t count = std::min<std::size_t>(kBlockOffsets, offsets.size() - first);
    if (crc_of_all(std::span<const std::uint64_t>(offsets).subspan(first, count)) !=
        block_crcs[block]) {
      refuse_index(bytes.path(), "its entries do not match their checksums.");
    }
  }
  if (!have_room_for_frames(offsets)) {
    refuse_index(bytes.path(), "some of its records begin inside others.");
  }
  return offsets;
}

}  // namespace

std::shared_ptr<const ShardIndex> load_old_index(const std::shared_ptr<const IndexBytes>& bytes) {
  const std::string& path = bytes->path();
  const OldHeader header = bytes->copy<OldHeader>(0, 1).front();
  const bool has_seek_points = header.compression != 0;
  constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
  const std::uint64_t block_count = header.record_count / kBlockOffsets + 1;
  const bool sane =
      header.index_bytes == bytes->size() && header.block_offsets == kBlockOffsets &&
      header.record_count < kMax && header.stream_bytes <= kMax &&
      header.compression <= static_cast<std::uint32_t>(Compression::zlib) &&
      (has_seek_points || header.stream_bytes == header.file_bytes) &&
      bytes->holds<DamageEntry>(header.damage_at, header.damage_count) &&
      bytes->holds<std::uint64_t>(header.offsets_at, header.record_count + 1) &&
      bytes->holds<std::uint32_t>(header.block_crcs_at, block_count) &&
      (!has_seek_points || bytes->holds<SpanEntry>(header.spans_at, header.span_count));
  if (!sane) refuse_index(path, "it was cut short, or its header contradicts itself.");

  const auto entries = bytes->copy<DamageEntry>(header.damage_at, header.damage_count);
  const auto block_crcs = bytes->copy<std::uint32_t>(header.block_crcs_at, block_count);
  if (crc_of_all(std::span(block_crcs), crc_of_all(std::span(entries))) != header.sections_crc) {
    refuse_index(path, "its list of damage and checksums does not match its own checksum.");
  }
  std::shared_ptr<const SeekPoints> points;
  if (has_seek_points) {
    const auto spans = bytes->copy<SpanEntry>(header.spans_at, header.span_count);
    if (crc_of_all(std::span(spans)) == header.spans_crc) {
      points =
          load_seek_points(bytes, spans, {0, bytes->size()}, header.file_end, old_facts(header));
    }
    if (points == nullptr) refuse_index(path, "its seek points make no sense for such a shard.");
  }
  auto index = std::make_shared<const ShardIndex>(
      old_facts(header), old_offsets(*bytes, header, block_crcs), load_damage(path, entries),
      std::move(points), IndexSource{nullptr, path, header.header_crc, true});
  refuse_unless_covered(*index);
  return index;
}

}  // namespace tfrfast
