#include "core/index/index_sections.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "core/base/error.h"
#include "core/codec/seek_points.h"
#include "core/crc32c/crc32c.h"
#include "core/storage/fault_guard.h"

namespace tfrfast {
namespace {

// ---- damage

// Damage has a list of its own, because gaps in the offsets would slow down every lookup.
std::vector<DamageEntry> damage_entries_of(std::span<const Damage> damage) {
  std::vector<DamageEntry> entries;
  for (const Damage& each : damage) {
    entries.push_back({each.begin, each.end, each.records_before, each.records_lost,
                       static_cast<std::uint64_t>(each.kind)});
  }
  return entries;
}

// Throws Error stale_index if no shard can have such damage. `path` is the index file's path.
std::vector<Damage> load_damage(const std::string& path, std::span<const DamageEntry> entries) {
  std::vector<Damage> damage;
  for (const DamageEntry& each : entries) {
    if (each.kind < 1 || each.kind > static_cast<std::uint64_t>(DamageKind::bad_stream) ||
        each.begin > each.end) {
      refuse_index(path, "its list of damage makes no sense.");
    }
    damage.push_back({static_cast<DamageKind>(each.kind), each.begin, each.end, each.records_before,
                      each.records_lost});
  }
  return damage;
}

// ---- seek points of a compressed shard

// Exceeds the deflated size of 32 KiB of incompressible bytes.
constexpr std::uint32_t kMaxWindowBytes = 34 << 10;

// Makes the section of seek points, and stores the CRC-32C of the header and entries in `crc`.
// Throws Error stale_index if the points lie in an index file that can no longer be read.
std::vector<std::uint8_t> seek_section_of(const SeekPoints& points, std::uint32_t* crc) {
  const SeekHeader header{points.size(), points.file_end().value_or(0)};
  const std::size_t windows_at = sizeof header + points.size() * sizeof(SpanEntry);
  std::vector<std::uint8_t> section(windows_at);
  std::memcpy(section.data(), &header, sizeof header);
  for (std::size_t number = 0; number < points.size(); ++number) {
    const Span span = points[number];
    const std::size_t at = section.size();
    const SpanEntry entry{span.end,
                          span.place.file_offset,
                          at,
                          static_cast<std::uint32_t>(span.window.size()),
                          span.window_crc,
                          span.crc,
                          span.file_crc,
                          span.place.bits};
    section.resize(at + span.window.size());
    std::memcpy(&section[sizeof header + number * sizeof entry], &entry, sizeof entry);
    if (!run_guarded(
            [&] { std::copy(span.window.begin(), span.window.end(), section.data() + at); })) {
      throw Error(ErrorKind::stale_index, "The index's seek points can no longer be read.");
    }
  }
  *crc = crc32c(section.data(), windows_at);
  return section;
}

// Loads the points of a section whose checksum must be `crc`. Null if the points cannot belong to
// such a shard.
std::shared_ptr<const SeekPoints> load_seek_section(const std::shared_ptr<const IndexBytes>& bytes,
                                                    const Section& section, std::uint32_t crc,
                                                    const ShardFacts& facts) {
  if (section.bytes < sizeof(SeekHeader) || !bytes->holds<SeekHeader>(section.at, 1) ||
      !bytes->holds<std::uint8_t>(section.at, section.bytes)) {
    return nullptr;
  }
  const SeekHeader header = bytes->copy<SeekHeader>(section.at, 1).front();
  if (header.span_count > (section.bytes - sizeof header) / sizeof(SpanEntry)) return nullptr;
  const auto entries = bytes->copy<SpanEntry>(section.at + sizeof header, header.span_count);
  const std::uint32_t found = crc32c(bytes_of(entries.data()), entries.size() * sizeof(SpanEntry),
                                     crc32c(bytes_of(&header), sizeof header));
  if (found != crc || header.file_end > facts.file_bytes) return nullptr;
  std::vector<Span> spans;
  spans.reserve(entries.size());
  std::uint64_t begin = 0;
  std::uint64_t file_begin = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const SpanEntry& each = entries[i];
    const std::uint64_t span_file_end =
        i + 1 < entries.size() ? entries[i + 1].file_offset : header.file_end;
    const bool is_sane = each.end > begin && each.file_offset > file_begin &&
                         span_file_end >= each.file_offset && span_file_end <= facts.file_bytes &&
                         each.bits < 8 && each.end - begin <= kMaxSpanBytes &&
                         (each.end - begin) / kMaxRatio <= span_file_end - each.file_offset + 1 &&
                         each.window_bytes <= kMaxWindowBytes && each.window_at <= section.bytes &&
                         each.window_bytes <= section.bytes - each.window_at;
    if (!is_sane) return nullptr;
    spans.push_back({begin,
                     each.end,
                     {each.file_offset, static_cast<unsigned>(each.bits)},
                     each.crc,
                     each.file_crc,
                     {bytes->at(section.at + each.window_at), each.window_bytes},
                     each.window_crc});
    begin = each.end;
    file_begin = each.file_offset;
  }
  if (begin != facts.stream_bytes) return nullptr;
  return SeekPoints::of(std::move(spans), header.file_end, bytes);
}

// ---- offsets

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
