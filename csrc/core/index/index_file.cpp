#include "core/index/index_file.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/error.h"
#include "core/base/publish.h"
#include "core/crc32c/crc32c.h"
#include "core/deflate/seek_points.h"
#include "core/shard/fault_guard.h"
#include "core/shard/file.h"

namespace tfrfast {
namespace {

static_assert(std::endian::native == std::endian::little, "offsets are mapped as they lie");

constexpr char kMagic[8] = {'T', 'F', 'R', 'F', 'I', 'D', 'X', '\n'};
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kVersionWithSeekPoints = 2;  // of compressed shards, and of those only
constexpr std::size_t kSmallFileBytes = 64 << 10;    // read whole: cheaper than a mapping

// The file begins with this, little-endian, then has sections where it says.
struct Header {
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
  std::uint64_t spans_at;       // SpanEntry[span_count]; here and below: version 2
  std::uint64_t span_count;
  std::uint64_t file_end;    // where the compressed data end, or cannot be read on
  std::uint32_t spans_crc;   // of the span entries
  std::uint32_t header_crc;  // of all header bytes before it
};
static_assert(sizeof(Header) == 128);

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

// What 32 KiB may take when they are deflated badly.
constexpr std::uint32_t kMostWindowBytes = 34 << 10;
// Deflate makes at most 258 bytes of two bits.
constexpr std::uint64_t kMostRatio = 1032;

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

std::uint32_t crc_of_header(const Header& header) {
  return crc32c(bytes_of(&header), offsetof(Header, header_crc));
}

std::uint64_t block_count_of(std::uint64_t record_count) {
  return record_count / ShardIndex::kBlockOffsets + 1;  // of record_count + 1 offsets
}

bool has_seek_points(const Header& header) {
  return header.version == kVersionWithSeekPoints;
}

std::uint64_t align_to_64(std::uint64_t offset) {
  return (offset + 63) / 64 * 64;
}

// What load_index has at hand: the whole file in memory or under a mapping.
class IndexBytes {
 public:
  explicit IndexBytes(const std::string& path) {
    IoMode mode = IoMode::mapped;
    if (identify_file(path).bytes <= kSmallFileBytes) mode = IoMode::pread;
    file_ = ShardFile::open(path, mode);
    if (file_->mapping() == nullptr) {
      // Sized by the open file: the name may have been given to another one since.
      owned_.resize((static_cast<std::size_t>(file_->bytes()) + 7) / 8);
      file_->read(0, reinterpret_cast<std::uint8_t*>(owned_.data()),
                  static_cast<std::size_t>(file_->bytes()));
      bytes_ = bytes_of(owned_.data());
    } else {
      bytes_ = file_->mapping();
    }
  }

  std::uint64_t size() const { return file_->bytes(); }
  const std::uint8_t* at(std::uint64_t offset) const { return bytes_ + offset; }

  // Copies `count` values from `offset`, which the caller knows to lie inside.
  template <class T>
  void copy(std::uint64_t offset, T* out, std::size_t count) const {
    if (count == 0) return;  // `out` may be null then
    const std::uint8_t* from = at(offset);
    if (!run_guarded([=] { std::memcpy(out, from, count * sizeof(T)); })) {
      throw_mapping_fault(*file_, offset);
    }
  }

  template <class T>
  bool holds(std::uint64_t offset, std::uint64_t count) const {
    return offset % alignof(T) == 0 && offset <= size() && count <= (size() - offset) / sizeof(T);
  }

 private:
  std::shared_ptr<const ShardFile> file_;
  std::vector<std::uint64_t> owned_;
  const std::uint8_t* bytes_ = nullptr;
};

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw Error(
      ErrorKind::stale_index,
      "Index '" + path + "' cannot be used: " + what + " Build it again: `tfrfast index --force`.",
      {path, {}, {}});
}

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

// Null if they make no sense for such a shard.
std::shared_ptr<const SeekPoints> load_seek_points(const std::shared_ptr<const IndexBytes>& bytes,
                                                   const Header& header) {
  if (!bytes->holds<SpanEntry>(header.spans_at, header.span_count) ||
      header.file_end > header.file_bytes) {
    return nullptr;
  }
  std::vector<SpanEntry> entries(static_cast<std::size_t>(header.span_count));
  bytes->copy(header.spans_at, entries.data(), entries.size());
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
                         each.bits < 8 &&
                         (each.end - begin) / kMostRatio <= file_end - each.file_offset + 1 &&
                         each.window_bytes <= kMostWindowBytes &&
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

void write_index(const ShardIndex& index, PublishedFile& file) {
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

  Header header = {};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = points == nullptr ? kVersion : kVersionWithSeekPoints;
  header.compression = static_cast<std::uint32_t>(index.facts().compression);
  header.file_bytes = index.facts().file_bytes;
  header.mtime_ns = index.facts().mtime_ns;
  header.stream_bytes = index.facts().stream_bytes;
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
  header.header_crc = crc_of_header(header);

  file.append(&header, sizeof header);
  file.append(damage.data(), damage_bytes);
  file.append(block_crcs.data(), crcs_bytes);
  constexpr std::uint8_t kPadding[64] = {};
  file.append(kPadding, header.offsets_at - header.block_crcs_at - crcs_bytes);
  file.append(offsets.data(), offsets.size() * sizeof offsets[0]);
  file.append(spans.data(), spans.size() * sizeof(SpanEntry));
  file.append(windows.data(), windows.size());
}

void save_index(const ShardIndex& index, const std::string& path, bool durable, Existing existing) {
  PublishedFile file(path);
  write_index(index, file);
  file.commit(durable, existing);
}

std::shared_ptr<const ShardIndex> load_index(const std::string& path) {
  std::shared_ptr<const IndexBytes> bytes;
  try {
    bytes = std::make_shared<const IndexBytes>(path);
  } catch (const Error& error) {
    if (error.system_error() == ENOENT || error.system_error() == ENOTDIR) return nullptr;
    throw;
  }
  Header header;
  if (bytes->size() < sizeof header) refuse(path, "it is shorter than an index's header.");
  bytes->copy(0, &header, 1);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) {
    refuse(path, "it does not begin like an index of tfrfast.");
  }
  if (header.header_crc != crc_of_header(header)) {
    refuse(path, "its header does not match its checksum.");
  }
  if (header.version != kVersion && !has_seek_points(header)) {
    refuse(path, "it has version " + std::to_string(header.version) + " and this tfrfast reads " +
                     std::to_string(kVersion) + " and " + std::to_string(kVersionWithSeekPoints) +
                     ".");
  }
  const bool sane =
      header.index_bytes == bytes->size() && header.block_offsets == ShardIndex::kBlockOffsets &&
      header.record_count < std::numeric_limits<std::int64_t>::max() &&
      header.compression <= static_cast<std::uint32_t>(Compression::zlib) &&
      (header.compression != 0) == has_seek_points(header) &&
      (has_seek_points(header) || header.stream_bytes == header.file_bytes) &&
      bytes->holds<DamageEntry>(header.damage_at, header.damage_count) &&
      bytes->holds<std::uint64_t>(header.offsets_at, header.record_count + 1) &&
      bytes->holds<std::uint32_t>(header.block_crcs_at, block_count_of(header.record_count));
  if (!sane) refuse(path, "it was cut short, or its header contradicts itself.");

  std::vector<DamageEntry> entries(static_cast<std::size_t>(header.damage_count));
  bytes->copy(header.damage_at, entries.data(), entries.size());
  std::vector<std::uint32_t> block_crcs(
      static_cast<std::size_t>(block_count_of(header.record_count)));
  bytes->copy(header.block_crcs_at, block_crcs.data(), block_crcs.size());
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
      refuse(path, "it lists damage that makes no sense.");
    }
    damage.push_back({static_cast<DamageKind>(each.kind), each.begin, each.end, each.records_before,
                      each.records_lost});
  }
  std::shared_ptr<const SeekPoints> points;
  if (has_seek_points(header)) {
    points = load_seek_points(bytes, header);
    if (points == nullptr) refuse(path, "its seek points make no sense for such a shard.");
  }
  const auto* offsets = reinterpret_cast<const std::uint64_t*>(bytes->at(header.offsets_at));
  return std::make_shared<const ShardIndex>(
      ShardFacts{header.file_bytes, header.mtime_ns, header.stream_bytes,
                 static_cast<Compression>(header.compression)},
      std::move(bytes), path, offsets, header.record_count, std::move(block_crcs),
      std::move(damage), std::move(points));
}

}  // namespace tfrfast
