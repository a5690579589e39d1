#include "core/index/index_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/codec/seek_points.h"
#include "core/crc32c/crc32c.h"
#include "core/index/index_format.h"
#include "core/storage/fault_guard.h"
#include "core/storage/in_place.h"
#include "core/storage/storage.h"
#include "core/storage/stored_file.h"

namespace tfrfast {
namespace {

constexpr std::size_t kSmallFileBytes = 64 << 10;  // read whole: cheaper than a mapping

std::uint64_t block_count_of(std::uint64_t record_count) {
  return record_count / ShardIndex::kBlockOffsets + 1;  // of record_count + 1 offsets
}

std::uint64_t align_to_64(std::uint64_t offset) {
  return (offset + 63) / 64 * 64;
}

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw Error(
      ErrorKind::stale_index,
      "Index '" + path + "' cannot be used: " + what + " Build it again: `tfrfast index --force`.",
      {path, {}, {}});
}

// An index file for load_index: all of it in memory, or mapped without a descriptor.
class IndexBytes {
 public:
  explicit IndexBytes(const std::string& path) : path_(path) {
    const bool is_small = examine_file(path).bytes <= kSmallFileBytes;
    auto file = StoredFile::open(path, is_small ? IoMode::pread : IoMode::mapped);
    size_ = file->bytes();
    owner_ = file->facts().owner;
    if (file->mapping() != nullptr) {
      bytes_ = file->mapping();
      file_ = std::move(file);
      return;
    }
    // The open file's size counts: another file may have the name by now.
    if (size_ > max_memory_bytes()) refuse_too_large();
    owned_.resize((static_cast<std::size_t>(size_) + 7) / 8);
    file->read(0, reinterpret_cast<std::uint8_t*>(owned_.data()), static_cast<std::size_t>(size_));
    bytes_ = bytes_of(owned_.data());
  }

  std::uint64_t size() const { return size_; }
  std::uint32_t owner() const { return owner_; }
  const std::uint8_t* at(std::uint64_t offset) const { return bytes_ + offset; }

  // A copy of `count` values from `offset`, which the caller knows to lie inside.
  template <class T>
  std::vector<T> copy(std::uint64_t offset, std::uint64_t count) const {
    if (count > max_memory_bytes() / sizeof(T)) refuse_too_large();
    std::vector<T> copied(static_cast<std::size_t>(count));
    if (count == 0) return copied;
    T* const out = copied.data();
    const std::uint8_t* from = at(offset);
    if (!run_guarded([=] { std::memcpy(out, from, count * sizeof(T)); })) {
      throw_mapping_fault(*file_, offset);
    }
    return copied;
  }

  // No section lies in the header: a stamp would change it.
  template <class T>
  bool holds(std::uint64_t offset, std::uint64_t count) const {
    return offset % alignof(T) == 0 && offset >= sizeof(IndexHeader) && offset <= size() &&
           count <= (size() - offset) / sizeof(T);
  }

 private:
  [[noreturn]] void refuse_too_large() const {
    refuse(path_, "it claims to hold more than there is memory for.");
  }

  const std::string path_;
  std::shared_ptr<const StoredFile> file_;  // if mapped
  std::vector<std::uint64_t> owned_;
  const std::uint8_t* bytes_ = nullptr;
  std::uint64_t size_ = 0;
  std::uint32_t owner_ = 0;
};

// `windows_at`: where `windows` will begin in the index file.
std::vector<SpanEntry> entries_of(const SeekPoints& points, std::uint64_t windows_at,
                                  std::vector<std::uint8_t>* windows) {
  std::vector<SpanEntry> entries;
  for (std::size_t number = 0; number < points.size(); ++number) {
    const Span span = points[number];
    entries.push_back({span.end, span.place.file_offset, windows_at + windows->size(),
                       static_cast<std::uint32_t>(span.window.size()), span.window_crc, span.crc,
                       span.file_crc, span.place.bits});
    const std::size_t at = windows->size();
    windows->resize(at + span.window.size());
    if (!run_guarded(
            [&] { std::copy(span.window.begin(), span.window.end(), windows->begin() + at); })) {
      throw Error(ErrorKind::stale_index, "The index's seek points can no longer be read.");
    }
  }
  return entries;
}

// Null if they cannot belong to such a shard.
std::shared_ptr<const SeekPoints> load_seek_points(const std::shared_ptr<const IndexBytes>& bytes,
                                                   const IndexHeader& header) {
  if (!bytes->holds<SpanEntry>(header.spans_at, header.span_count) ||
      header.file_end > header.file_bytes) {
    return nullptr;
  }
  const auto entries = bytes->copy<SpanEntry>(header.spans_at, header.span_count);
  if (crc32c(bytes_of(entries.data()), entries.size() * sizeof(SpanEntry)) != header.spans_crc) {
    return nullptr;
  }
  std::vector<Span> spans;
  spans.reserve(entries.size());
  std::uint64_t begin = 0;
  std::uint64_t file_begin = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const SpanEntry& each = entries[i];
    const std::uint64_t file_end =
        i + 1 < entries.size() ? entries[i + 1].file_offset : header.file_end;
    const bool is_sane = each.end > begin && each.file_offset > file_begin &&
                         file_end >= each.file_offset && file_end <= header.file_bytes &&
                         each.bits < 8 && each.end - begin <= kMaxSpanBytes &&
                         (each.end - begin) / kMaxRatio <= file_end - each.file_offset + 1 &&
                         each.window_bytes <= kMaxWindowBytes &&
                         bytes->holds<std::uint8_t>(each.window_at, each.window_bytes);
    if (!is_sane) return nullptr;
    spans.push_back({begin,
                     each.end,
                     {each.file_offset, static_cast<unsigned>(each.bits)},
                     each.crc,
                     each.file_crc,
                     {bytes->at(each.window_at), each.window_bytes},
                     each.window_crc});
    begin = each.end;
    file_begin = each.file_offset;
  }
  if (begin != header.stream_bytes) return nullptr;
  return SeekPoints::of(std::move(spans), header.file_end, bytes);
}

}  // namespace

void write_index(const ShardIndex& index, Publication& file) {
  const SeekPoints* const points = index.seek_points().get();
  const std::vector<std::uint64_t> offsets = index.copy_offsets();
  std::vector<DamageEntry> damage;
  for (const Damage& each : index.damage()) {
    damage.push_back({each.begin, each.end, each.records_before, each.records_lost,
                      static_cast<std::uint64_t>(each.kind)});
  }
  std::vector<std::uint32_t> block_crcs;
  for (std::size_t first = 0; first < offsets.size(); first += ShardIndex::kBlockOffsets) {
    const std::size_t count = std::min(ShardIndex::kBlockOffsets, offsets.size() - first);
    block_crcs.push_back(crc32c(bytes_of(offsets.data() + first), count * sizeof offsets[0]));
  }
  const std::size_t damage_bytes = damage.size() * sizeof(DamageEntry);
  const std::size_t crcs_bytes = block_crcs.size() * sizeof block_crcs[0];

  IndexHeader header = {};
  std::memcpy(header.magic, kIndexMagic, sizeof kIndexMagic);
  header.version = kIndexVersion;
  header.compression = static_cast<std::uint32_t>(index.facts().compression);
  header.stream_bytes = index.facts().stream_bytes;
  set_state(header, index.facts());
  header.record_count = index.record_count();
  header.damage_count = damage.size();
  header.damage_at = sizeof header;
  header.block_crcs_at = header.damage_at + damage_bytes;
  header.offsets_at = align_to_64(header.block_crcs_at + crcs_bytes);
  const std::uint64_t offsets_end = header.offsets_at + offsets.size() * sizeof offsets[0];
  std::vector<SpanEntry> spans;
  std::vector<std::uint8_t> windows;
  if (points != nullptr) {
    header.spans_at = offsets_end;
    header.span_count = points->size();
    header.file_end = points->file_end().value_or(0);
    spans = entries_of(*points, offsets_end + points->size() * sizeof(SpanEntry), &windows);
    header.spans_crc = crc32c(bytes_of(spans.data()), spans.size() * sizeof(SpanEntry));
  }
  header.index_bytes = offsets_end + spans.size() * sizeof(SpanEntry) + windows.size();
  header.block_offsets = ShardIndex::kBlockOffsets;
  header.sections_crc = crc32c(bytes_of(block_crcs.data()), crcs_bytes,
                               crc32c(bytes_of(damage.data()), damage_bytes));
  header.header_crc = crc_of(header);

  file.append(&header, sizeof header);
  file.append(damage.data(), damage_bytes);
  file.append(block_crcs.data(), crcs_bytes);
  constexpr std::uint8_t kPadding[64] = {};
  file.append(kPadding, header.offsets_at - header.block_crcs_at - crcs_bytes);
  file.append(offsets.data(), offsets.size() * sizeof offsets[0]);
  file.append(spans.data(), spans.size() * sizeof(SpanEntry));
  file.append(windows.data(), windows.size());
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
    if (bytes->size() < sizeof header) refuse(path, "it is shorter than an index's header.");
    const IndexHeader before = header;
    header = bytes->copy<IndexHeader>(0, 1).front();
    if (std::memcmp(header.magic, kIndexMagic, sizeof kIndexMagic) != 0) {
      refuse(path, "it does not begin like an index of tfrfast.");
    }
    if (header.version != kIndexVersion) {
      refuse(path, "it has version " + std::to_string(header.version) +
                       " and this tfrfast reads version " + std::to_string(kIndexVersion) + ".");
    }
    if (header.header_crc == crc_of(header)) break;
    // stamp_index() may be changing it at this moment. If so, it differs the next time.
    if (std::memcmp(&before, &header, sizeof header) == 0) {
      refuse(path, "its header does not match its checksum.");
    }
  }
  const bool has_seek_points = header.compression != 0;
  const bool sane =
      header.index_bytes == bytes->size() && header.block_offsets == ShardIndex::kBlockOffsets &&
      header.record_count < std::numeric_limits<std::int64_t>::max() &&
      header.stream_bytes <= std::numeric_limits<std::int64_t>::max() &&
      header.compression <= static_cast<std::uint32_t>(Compression::zlib) &&
      (has_seek_points || header.stream_bytes == header.file_bytes) &&
      bytes->holds<DamageEntry>(header.damage_at, header.damage_count) &&
      bytes->holds<std::uint64_t>(header.offsets_at, header.record_count + 1) &&
      bytes->holds<std::uint32_t>(header.block_crcs_at, block_count_of(header.record_count));
  if (!sane) refuse(path, "it was cut short, or its header contradicts itself.");

  const auto entries = bytes->copy<DamageEntry>(header.damage_at, header.damage_count);
  auto block_crcs =
      bytes->copy<std::uint32_t>(header.block_crcs_at, block_count_of(header.record_count));
  const std::uint32_t sections_crc =
      crc32c(bytes_of(block_crcs.data()), block_crcs.size() * sizeof block_crcs[0],
             crc32c(bytes_of(entries.data()), entries.size() * sizeof(DamageEntry)));
  if (sections_crc != header.sections_crc) {
    refuse(path, "its list of damage and checksums does not match its own checksum.");
  }
  std::vector<Damage> damage;
  for (const DamageEntry& each : entries) {
    if (each.kind < 1 || each.kind > static_cast<std::uint64_t>(DamageKind::bad_stream) ||
        each.begin > each.end) {
      refuse(path, "its list of damage makes no sense.");
    }
    damage.push_back({static_cast<DamageKind>(each.kind), each.begin, each.end, each.records_before,
                      each.records_lost});
  }
  std::shared_ptr<const SeekPoints> points;
  if (has_seek_points) {
    points = load_seek_points(bytes, header);
    if (points == nullptr) refuse(path, "its seek points make no sense for such a shard.");
  }
  const auto* offsets = reinterpret_cast<const std::uint64_t*>(bytes->at(header.offsets_at));
  auto index = std::make_shared<const ShardIndex>(
      facts_of(header), IndexSource{std::move(bytes), path, header.header_crc}, offsets,
      header.record_count, std::move(block_crcs), std::move(damage), std::move(points));
  if (!index->covers_shard()) {
    refuse(path, "its records and its damage do not add up to its shard, from beginning to end.");
  }
  return index;
}

}  // namespace tfrfast
