// Loads an index of any bytes. The index is refused, or reading by the index gives existing
// records.
#include <cstring>
#include <memory>

#include "core/base/bytes.h"
#include "core/base/error.h"
#include "core/crc32c/crc32c.h"
#include "core/index/damage_in_words.h"
#include "core/index/index_sections.h"
#include "core/index/index_state.h"
#include "core/index/opening.h"
#include "core/index/shard_set.h"
#include "core/read/reader.h"
#include "may_throw.h"
#include "memory_file.h"
#include "reference_walk.h"

using namespace tfrfast;

namespace {

using Bytes = std::vector<std::uint8_t>;

// Places in the shard's entry, as docs/index-format.md describes them. An input begins with an
// entry, and the entry's places count from the input's beginning.
constexpr std::size_t kFileBytesAt = 0;
constexpr std::size_t kMtimeAt = 8;
constexpr std::size_t kDeviceAt = 16;
constexpr std::size_t kFlagsAt = 44;
constexpr std::size_t kStreamBytesAt = 48;
constexpr std::size_t kRecordCountAt = 56;
constexpr std::size_t kOffsetsAt = 64;
constexpr std::size_t kDamageAt = 80;
constexpr std::size_t kOffsetsCrcAt = 112;
constexpr std::size_t kDamageCrcAt = 116;
constexpr std::uint32_t kSettled = 1;

// Five records with a damaged header between them and a torn tail.
struct Shard {
  Shard() {
    for (const std::size_t size : {0, 5, 40, 5, 100}) {
      std::uint8_t frame[kFrameOverhead + 100] = {};
      encode_header(size, frame);
      std::memset(frame + kHeaderBytes, 'a' + static_cast<int>(size % 26), size);
      encode_footer(masked_crc32c(frame + kHeaderBytes, size), frame + kHeaderBytes + size);
      if (bytes.size() == 37) frame[8] ^= 1;
      bytes.insert(bytes.end(), frame, frame + kFrameOverhead + size);
    }
    bytes.insert(bytes.end(), 7, 0xee);
    file.set(bytes);
    mapped = StoredFile::open(file.path(), IoMode::mapped);
    pread = StoredFile::open(file.path(), IoMode::pread);
  }
  MemoryFile file;
  Bytes bytes;
  std::shared_ptr<const StoredFile> mapped, pread;
};

std::uint64_t field(const Bytes& index, std::size_t at) {
  return load_little_endian<std::uint64_t>(index.data() + at);
}

bool lies_inside(const Bytes& index, std::uint64_t at, std::uint64_t count, std::uint64_t width) {
  return at <= index.size() && count <= (index.size() - at) / width;
}

void seal(Bytes& index, std::size_t crc_at, std::uint64_t from, std::uint64_t bytes) {
  store_little_endian<std::uint32_t>(&index[crc_at], crc32c(index.data() + from, bytes));
}

// The checksums of the sections.
void repair_sections(Bytes& index, std::uint8_t how) {
  const std::uint64_t count = field(index, kRecordCountAt) + 1;
  const std::uint64_t at = field(index, kOffsetsAt);
  const std::uint64_t bytes = field(index, kOffsetsAt + 8);
  const std::uint64_t pages = PackedOffsets::page_count_of(count);
  const std::uint64_t crcs_bytes = (4 * pages + 7) / 8 * 8;
  const std::uint64_t blocks_bytes = 16 * PackedOffsets::block_count_of(count);
  if (count > 0 && count < 10'000 && at % 8 == 0 && lies_inside(index, at, bytes, 1) &&
      bytes >= crcs_bytes + blocks_bytes + PackedOffsets::kResidualPadding) {
    const std::uint64_t before_residuals = crcs_bytes + blocks_bytes;
    // Aligned like a mapped file's.
    std::vector<OffsetBlock> blocks(blocks_bytes / sizeof(OffsetBlock));
    std::memcpy(blocks.data(), &index[at + crcs_bytes], blocks_bytes);
    const Bytes residuals(index.begin() + static_cast<std::ptrdiff_t>(at + before_residuals),
                          index.begin() + static_cast<std::ptrdiff_t>(at + bytes));
    const PackedOffsets offsets(blocks.data(), residuals, count);
    for (std::uint64_t page = 0; (how & 8) != 0 && page < pages; ++page) {
      std::uint32_t crc;
      if (offsets.checksum(page, &crc)) {
        store_little_endian<std::uint32_t>(&index[at + 4 * page], crc);
      }
    }
    if (how & 16) seal(index, kOffsetsCrcAt, at, crcs_bytes);
  }
  const std::uint64_t damage = field(index, kDamageAt);
  const std::uint64_t damage_bytes = field(index, kDamageAt + 8);
  if ((how & 16) && lies_inside(index, damage, damage_bytes, 1)) {
    seal(index, kDamageCrcAt, damage, damage_bytes);
  }
}

// Gives any bytes the right checksums, so that the code after the checksums is tested.
void repair(Bytes& index, std::uint8_t how, const StoredFile& file) {
  if (how & 2) {
    store_little_endian<std::uint64_t>(&index[kFileBytesAt], file.bytes());
    store_little_endian<std::uint64_t>(&index[kStreamBytesAt], file.bytes());
  }
  if (how & 4) {
    const FileFacts& facts = file.facts();
    store_little_endian<std::uint64_t>(&index[kMtimeAt],
                                       static_cast<std::uint64_t>(facts.mtime_ns));
    for (std::size_t word = 0; word < 3; ++word) {
      store_little_endian<std::uint64_t>(&index[kDeviceAt + 8 * word], facts.version.words[word]);
    }
    index[kFlagsAt] |= kSettled;
  }
  repair_sections(index, how);
}

void read_through(const std::shared_ptr<const ShardIndex>& index, const Shard& shard,
                  const std::shared_ptr<const StoredFile>& file, Verify verify) {
  bool fits = false;
  may_throw([&] { fits = index_fits(*index, *file); });
  // The looks into the shard hide no record.
  may_throw([&] {
    if (!fits || index->seek_points() != nullptr || !has_claimed_damage(*index, *file)) return;
    std::vector<std::uint64_t> records = walk_shard(file).offsets.unpack();
    records.pop_back();
    for (const std::uint64_t record : records) {
      for (const Damage& each : index->damage()) {
        require(record < each.begin || record >= each.end);
      }
    }
  });
  if (!fits) return;
  const IndexedShard indexed{as_indexed(file, *index), index, false, {}};
  for (const Damage& damage : index->damage()) may_throw([&] { throw_damage(indexed, damage); });
  const Reader reader(std::make_shared<const ShardSet>(std::vector{indexed}), {verify, true, 1});
  reader.skipped();
  const std::uint64_t record_count = std::min<std::uint64_t>(reader.record_count(), 200);
  const auto check = [&](std::uint64_t record, std::span<const std::uint8_t> payload) {
    const Frame frame = index->frame(record);
    require(frame.offset + kFrameOverhead + payload.size() <= shard.bytes.size());
    require(reference::header_holds(shard.bytes, frame.offset));
    require(reference::number_at(shard.bytes, frame.offset, 8) == payload.size());
    require(payload.empty() ||
            std::memcmp(payload.data(), &shard.bytes[frame.offset + kHeaderBytes],
                        payload.size()) == 0);
  };
  for (std::uint64_t record = 0; record < record_count; ++record) {
    may_throw([&] {
      const auto number = static_cast<std::int64_t>(record);
      const auto batch = reader.read({&number, 1});
      if (batch->size() == 1) check(record, (*batch)[0]);
    });
  }
  may_throw([&] {
    for (std::uint64_t next = 0; next < record_count;) {
      const std::uint64_t end = reader.range_end(next, 100, 8);
      require(end > next);
      const Reader::Range range = reader.read_range(next, end);
      require(range.next > next && range.next <= end);
      for (std::size_t row = 0; row < range.batch->size(); ++row) {
        check(static_cast<std::uint64_t>(range.batch->indices()[row]), (*range.batch)[row]);
      }
      next = range.next;
    }
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Shard shard;
  static MemoryFile file;
  if (size < 2) return 0;
  const auto verify = static_cast<Verify>(data[1] % 2);
  Bytes bytes(data + 2, data + size);
  ShardEntry entry;
  if (bytes.size() < sizeof entry) return 0;
  repair(bytes, data[0], *shard.mapped);
  std::memcpy(&entry, bytes.data(), sizeof entry);
  file.set(bytes);
  const auto io = (data[0] & 64) != 0 ? IoMode::mapped : IoMode::pread;
  may_throw([&] {
    const auto index = load_sections(
        std::make_shared<const IndexBytes>(StoredFile::open(file.path(), io), 0, bytes.size()),
        entry);
    read_through(index, shard, shard.mapped, verify);
    read_through(index, shard, shard.pread, verify);
    // All ways to read the index's entries agree.
    const std::vector<std::uint64_t> offsets = index->copy_packed().unpack();
    for (std::uint64_t i = 0; i + 1 < std::min<std::size_t>(offsets.size(), 1000); ++i) {
      const auto [begin, next] = index->offsets().pair(i);
      require(begin == offsets[i] && next == offsets[i + 1]);
    }
    require(index->has_same_entries(*index));
  });
  return 0;
}
