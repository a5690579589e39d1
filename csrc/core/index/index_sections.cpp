#include "core/index/index_sections.h"

#include <cstring>
#include <limits>
#include <utility>

#include "core/crc32c/crc32c.h"
#include "core/index/damage_section.h"
#include "core/index/seek_section.h"

namespace tfrfast {
namespace {

std::uint64_t page_crcs_bytes(std::uint64_t offset_count) {
  return aligned(PackedOffsets::page_count_of(offset_count) * sizeof(std::uint32_t));
}

std::vector<std::uint8_t> offsets_section_of(const ShardIndex& index, std::uint32_t* crc) {
  const PackedBytes packed = index.copy_packed();
  const PackedOffsets offsets = packed.view();
  const auto crcs_bytes = static_cast<std::size_t>(page_crcs_bytes(packed.count));
  const std::size_t blocks_bytes = packed.blocks.size() * sizeof(OffsetBlock);
  std::vector<std::uint8_t> section(crcs_bytes + blocks_bytes + packed.residuals.size());
  for (std::uint64_t page = 0; page < PackedOffsets::page_count_of(packed.count); ++page) {
    std::uint32_t page_crc = 0;
    offsets.checksum(page, &page_crc);
    std::memcpy(&section[page * sizeof page_crc], &page_crc, sizeof page_crc);
  }
  std::memcpy(&section[crcs_bytes], packed.blocks.data(), blocks_bytes);
  std::memcpy(&section[crcs_bytes + blocks_bytes], packed.residuals.data(),
              packed.residuals.size());
  *crc = crc32c(section.data(), crcs_bytes);
  return section;
}

}  // namespace

std::shared_ptr<const ShardIndex> load_sections(const std::shared_ptr<const IndexBytes>& bytes,
                                                const ShardEntry& shard) {
  const std::string& path = bytes->path();
  const bool has_seek_points = shard.compression != 0;
  constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
  const auto lies_inside = [&](const Section& section) {
    return section.at % kSectionAlignment == 0 &&
           bytes->holds<std::uint8_t>(section.at, section.bytes);
  };
  bool sane = shard.record_count < kMax && shard.stream_bytes <= kMax &&
              shard.compression <= static_cast<std::uint32_t>(Compression::zlib) &&
              (has_seek_points || shard.stream_bytes == shard.file_bytes) &&
              lies_inside(shard.offsets) && lies_inside(shard.damage) &&
              shard.damage.bytes % sizeof(DamageEntry) == 0;
  // No overflow below: there are fewer than 2**63 offsets.
  const std::uint64_t count = shard.record_count + 1;
  const std::uint64_t blocks_at = shard.offsets.at + page_crcs_bytes(count);
  const std::uint64_t before_residuals =
      page_crcs_bytes(count) + PackedOffsets::block_count_of(count) * sizeof(OffsetBlock);
  sane = sane && before_residuals <= shard.offsets.bytes &&
         shard.offsets.bytes - before_residuals >= PackedOffsets::kResidualPadding;
  if (!sane) refuse_index(path, "it was cut short, or its header contradicts itself.");

  auto page_crcs =
      bytes->copy<std::uint32_t>(shard.offsets.at, page_crcs_bytes(count) / sizeof(std::uint32_t));
  if (crc32c(bytes_of(page_crcs.data()), page_crcs.size() * sizeof page_crcs[0]) !=
      shard.offsets_crc) {
    refuse_index(path, "its list of checksums does not match its own checksum.");
  }
  page_crcs.resize(static_cast<std::size_t>(PackedOffsets::page_count_of(count)));
  const auto entries =
      bytes->copy<DamageEntry>(shard.damage.at, shard.damage.bytes / sizeof(DamageEntry));
  if (crc32c(bytes_of(entries.data()), static_cast<std::size_t>(shard.damage.bytes)) !=
      shard.damage_crc) {
    refuse_index(path, "its list of damage does not match its checksum.");
  }
  std::shared_ptr<const SeekPoints> points;
  if (has_seek_points) {
    points = load_seek_section(bytes, shard.seek_points, shard.seek_points_crc, facts_of(shard));
    if (points == nullptr) refuse_index(path, "its seek points make no sense for such a shard.");
  }
  const PackedOffsets offsets(reinterpret_cast<const OffsetBlock*>(bytes->at(blocks_at)),
                              {bytes->at(shard.offsets.at + before_residuals),
                               static_cast<std::size_t>(shard.offsets.bytes - before_residuals)},
                              count);
  auto index =
      std::make_shared<const ShardIndex>(facts_of(shard), IndexSource{bytes, path}, offsets,
                                         std::move(page_crcs), load_damage(path, entries), points);
  if (!index->covers_shard()) {
    refuse_index(path,
                 "its records and its damage do not add up to its shard, from beginning to end.");
  }
  return index;
}

IndexSections sections_of(const ShardIndex& index) {
  IndexSections made;
  ShardEntry& shard = made.shard;
  set_state(shard, index.facts());
  shard.compression = static_cast<std::uint32_t>(index.facts().compression);
  shard.stream_bytes = index.facts().stream_bytes;
  shard.record_count = index.record_count();

  const auto place = [&](const void* bytes, std::size_t count) {
    const Section section{made.bytes.size(), count};
    const auto* const from = static_cast<const std::uint8_t*>(bytes);
    made.bytes.insert(made.bytes.end(), from, from + count);
    return section;
  };
  const std::vector<DamageEntry> damage = damage_entries_of(index.damage());
  const std::size_t damage_bytes = damage.size() * sizeof(DamageEntry);
  shard.damage = place(damage.data(), damage_bytes);
  shard.damage_crc = crc32c(bytes_of(damage.data()), damage_bytes);
  const auto offsets = offsets_section_of(index, &shard.offsets_crc);
  shard.offsets = place(offsets.data(), offsets.size());
  if (index.seek_points() != nullptr) {
    const auto seek_points = seek_section_of(*index.seek_points(), &shard.seek_points_crc);
    shard.seek_points = place(seek_points.data(), seek_points.size());
  }
  return made;
}

}  // namespace tfrfast
