#include "core/index/index_file.h"

#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/crc32c/crc32c.h"
#include "core/index/damage_section.h"
#include "core/index/index_bytes.h"
#include "core/index/index_format.h"
#include "core/index/old_index_file.h"
#include "core/index/seek_section.h"
#include "core/storage/in_place.h"
#include "core/storage/storage.h"

namespace tfrfast {
namespace {

constexpr std::uint64_t kSectionAlignment = 8;

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment;
}

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

std::shared_ptr<const ShardIndex> load_current(const std::shared_ptr<const IndexBytes>& bytes,
                                               const IndexHeader& header) {
  const std::string& path = bytes->path();
  const ShardEntry& shard = header.shard;
  const bool has_seek_points = shard.compression != 0;
  constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
  const auto lies_inside = [&](const Section& section) {
    return section.at % kSectionAlignment == 0 &&
           bytes->holds<std::uint8_t>(section.at, section.bytes);
  };
  bool sane = header.index_bytes == bytes->size() && shard.record_count < kMax &&
              shard.stream_bytes <= kMax &&
              shard.compression <= static_cast<std::uint32_t>(Compression::zlib) &&
              (has_seek_points || shard.stream_bytes == shard.file_bytes) &&
              lies_inside(shard.offsets) && lies_inside(shard.damage) &&
              shard.damage.bytes % sizeof(DamageEntry) == 0;
  // Nothing here can overflow: there are fewer than 2**63 offsets.
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
  return std::make_shared<const ShardIndex>(
      facts_of(shard), IndexSource{bytes, path, header.header_crc}, offsets, std::move(page_crcs),
      load_damage(path, entries), points);
}

}  // namespace

void write_index(const ShardIndex& index, Publication& file) {
  IndexHeader header = {};
  std::memcpy(header.magic, kIndexMagic, sizeof kIndexMagic);
  header.version = kIndexVersion;
  ShardEntry& shard = header.shard;
  set_state(shard, index.facts());
  shard.compression = static_cast<std::uint32_t>(index.facts().compression);
  shard.stream_bytes = index.facts().stream_bytes;
  shard.record_count = index.record_count();

  std::uint64_t end = sizeof header;
  const auto place = [&end](std::size_t bytes) {
    return Section{std::exchange(end, end + bytes), bytes};
  };
  const std::vector<DamageEntry> damage = damage_entries_of(index.damage());
  const std::size_t damage_bytes = damage.size() * sizeof(DamageEntry);
  shard.damage = place(damage_bytes);
  shard.damage_crc = crc32c(bytes_of(damage.data()), damage_bytes);
  const auto offsets = offsets_section_of(index, &shard.offsets_crc);
  shard.offsets = place(offsets.size());
  std::vector<std::uint8_t> seek_points;
  if (index.seek_points() != nullptr) {
    seek_points = seek_section_of(*index.seek_points(), &shard.seek_points_crc);
    shard.seek_points = place(seek_points.size());
  }
  header.index_bytes = end;
  header.header_crc = crc_of(header);

  file.append(&header, sizeof header);
  file.append(damage.data(), damage_bytes);
  file.append(offsets.data(), offsets.size());
  file.append(seek_points.data(), seek_points.size());
}

bool begins_like_index(const std::string& path) noexcept {
  char bytes[sizeof kIndexMagic];
  return peek(path, bytes, sizeof bytes) &&
         (std::memcmp(bytes, kIndexMagic, sizeof kIndexMagic) == 0 ||
          std::memcmp(bytes, kProofMagic, sizeof kProofMagic) == 0);
}

void save_index(const ShardIndex& index, const std::string& path, bool durable, Existing existing) {
  const auto file = publish_file(path);
  write_index(index, *file);
  file->commit(durable, existing);
}

std::shared_ptr<const ShardIndex> load_index(const std::string& path, std::uint32_t* owner) {
  std::shared_ptr<const IndexBytes> bytes;
  IndexHeader header = {};
  for (;;) {
    try {
      bytes = std::make_shared<const IndexBytes>(path);
    } catch (const Error& error) {
      if (error.system_error() == ENOENT || error.system_error() == ENOTDIR) return nullptr;
      throw;
    }
    if (owner != nullptr) *owner = bytes->owner();
    if (bytes->size() < sizeof header) refuse_index(path, "it is shorter than an index's header.");
    const IndexHeader before = header;
    header = bytes->copy<IndexHeader>(0, 1).front();
    if (std::memcmp(header.magic, kIndexMagic, sizeof kIndexMagic) != 0) {
      refuse_index(path, "it does not begin like an index of tfrfast.");
    }
    if (header.version != kIndexVersion && header.version != kOldIndexVersion) {
      refuse_index(path, "it has version " + std::to_string(header.version) +
                             " and this tfrfast reads versions " +
                             std::to_string(kOldIndexVersion) + " and " +
                             std::to_string(kIndexVersion) + ".");
    }
    if (header.header_crc == crc_of(header)) break;
    // stamp_index() may be changing it at this moment. If so, it differs the next time.
    if (std::memcmp(&before, &header, sizeof header) == 0) {
      refuse_index(path, "its header does not match its checksum.");
    }
  }
  const auto index =
      header.version == kOldIndexVersion ? load_old_index(bytes) : load_current(bytes, header);
  if (!index->covers_shard()) {
    refuse_index(path,
                 "its records and its damage do not add up to its shard, from beginning to end.");
  }
  return index;
}

}  // namespace tfrfast
