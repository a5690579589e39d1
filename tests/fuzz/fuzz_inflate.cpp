// Inflates a GZIP or ZLIB file of any bytes. The walk, inflating from the seek points and saving
// the seek points agree, and no memory outside the buffers is read or written.
#include <algorithm>
#include <cstring>

#include "core/base/bytes.h"
#include "core/codec/deflater.h"
#include "core/codec/inflating_walker.h"
#include "core/crc32c/crc32c.h"
#include "core/index/damage_in_words.h"
#include "core/index/index_format.h"
#include "core/index/index_sections.h"
#include "core/index/index_state.h"
#include "core/index/opening.h"
#include "core/read/reader.h"
#include "may_throw.h"
#include "memory_file.h"

using namespace tfrfast;

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kMaxInflated = 8 << 20;  // bombs take time, and find no new bugs

// Packs the input into one or two members, damaged where the input's first bytes say. So damage
// lies deep inside, where mutations of deflate data would hardly ever reach.
Bytes pack(std::span<const std::uint8_t> input, Compression compression, unsigned how) {
  Deflater deflater(codec_of(compression).window_bits, static_cast<int>(how % 10));
  Bytes content;
  const std::size_t repeats = (how & 16) != 0 ? 1 + (3 << 20) / (input.size() + 1) : 1;
  for (std::size_t i = 0; i < repeats; ++i)
    content.insert(content.end(), input.begin(), input.end());
  Bytes packed;
  for (std::size_t member = 0; member < ((how & 32) != 0 ? 2u : 1u); ++member) {
    const auto deflated = deflater.deflate(content);
    packed.insert(packed.end(), deflated.begin(), deflated.end());
  }
  if ((how & 64) != 0 && !input.empty()) {
    packed[input[0] * packed.size() / 256] ^= static_cast<std::uint8_t>(input.back() | 1);
  }
  if ((how & 128) != 0) packed.resize(packed.size() - packed.size() / 3);
  return packed;
}

struct Survey {
  Bytes stream;  // up to the first damage
  bool may_go_on = false;
};
Survey survey(const std::shared_ptr<const StoredFile>& file, Compression compression) {
  Bytes stream;
  StreamInflater inflater(file, compression, Inflater::Kind::zlib, StreamInflater::Checks::members);
  inflater.begin();
  Bytes piece(100'000);
  while (inflater.end() == StreamEnd::none && stream.size() < kMaxInflated) {
    const std::size_t count = inflater.read(piece, stream.size() % 3 == 0);
    stream.insert(stream.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(count));
  }
  return {stream, compression == Compression::gzip && inflater.end() != StreamEnd::clean};
}

std::shared_ptr<const ShardIndex> load(const IndexSections& index) {
  static MemoryFile file;
  file.set(index.bytes);
  return load_sections(std::make_shared<const IndexBytes>(
                           StoredFile::open(file.path(), IoMode::pread), 0, index.bytes.size()),
                       index.shard);
}

// With any index, records are the stream's records, or an Error is thrown.
void read_backwards(const std::shared_ptr<const StoredFile>& file,
                    const std::shared_ptr<const ShardIndex>& index, const Bytes& stream) {
  const IndexedShard indexed{as_indexed(file, *index), index, false, {}};
  for (const Damage& damage : index->damage()) may_throw([&] { throw_damage(indexed, damage); });
  const Reader reader(std::make_shared<const ShardSet>(std::vector{indexed}),
                      {Verify::header, true, 1});
  std::vector<std::int64_t> rows(std::min<std::uint64_t>(reader.record_count(), 50));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i] = static_cast<std::int64_t>(rows.size() - 1 - i);
  }
  const auto batch = reader.read(rows);
  for (std::size_t row = 0; row < batch->size(); ++row) {
    const Frame frame = index->frame(static_cast<std::uint64_t>(batch->indices()[row]));
    const auto payload = (*batch)[row];
    require(frame.offset + kFrameOverhead + payload.size() <= stream.size());
    require(payload.empty() ||
            std::memcmp(payload.data(), &stream[frame.offset + kHeaderBytes], payload.size()) == 0);
  }
}

// Changes some of the seek points or windows, and mends the checksums that would reveal the change.
void tamper(IndexSections& index, std::span<const std::uint8_t> how) {
  const std::uint64_t section_at = index.shard.seek_points.at;
  if (index.shard.seek_points.bytes == 0) return;
  const auto spans =
      load_little_endian<std::uint64_t>(&index.bytes[section_at]) * sizeof(SpanEntry);
  if (spans == 0) return;
  const std::uint64_t spans_at = section_at + sizeof(SeekHeader);
  for (std::size_t i = 0; i + 2 < how.size() && i < 12; i += 3) {
    const std::size_t at = how[i] + 256u * how[i + 1];
    index.bytes[spans_at + at % (index.bytes.size() - spans_at)] ^= how[i + 2];
  }
  index.shard.seek_points_crc = crc32c(&index.bytes[section_at], sizeof(SeekHeader) + spans);
}

// Whether a member after the first begins in the first `bytes` of the stream.
bool member_begins_before(const InflatedFile& walked, std::size_t bytes) {
  const SeekPoints& points = walked.seek_points();
  for (std::size_t i = 1; i < points.size(); ++i) {
    if (points[i].begin <= bytes && points[i].window.empty()) return true;
  }
  return false;
}

void check(const std::shared_ptr<const StoredFile>& file, Compression compression,
           std::span<const std::uint8_t> how) {
  const auto [before_damage, may_go_on] = survey(file, compression);
  if (before_damage.size() >= kMaxInflated) return;
  const auto index = index_of(*file, compression, walk_shard(file, nullptr, compression), true);
  const auto walked = as_indexed(file, *index);
  Bytes stream(static_cast<std::size_t>(index->facts().stream_bytes));
  walked->read(0, stream.data(), stream.size());
  const auto same = static_cast<std::size_t>(std::ranges::mismatch(before_damage, stream).in1 -
                                             before_damage.begin());
  if (!may_go_on) require(stream == before_damage);
  // The walk counts the bytes of the next whole member for that member alone.
  require(same == before_damage.size() || same == stream.size() ||
          member_begins_before(dynamic_cast<const InflatedFile&>(*walked), same));
  require(index->covers_shard());
  IndexSections saved = sections_of(*index);
  const auto loaded = load(saved);
  require(index_fits(*loaded, *file));
  const auto inflated = as_indexed(file, *loaded);
  require(inflated->bytes() == stream.size());
  Bytes again(stream.size());
  // Backwards, so that inflating begins at each span.
  for (std::size_t end = stream.size(); end > 0;) {
    const std::size_t begin = end - std::min<std::size_t>(end, 300'000);
    inflated->read(begin, again.data() + begin, end - begin);
    end = begin;
  }
  require(again == stream);
  read_backwards(file, loaded, stream);
  tamper(saved, how);
  may_throw([&] { read_backwards(file, load(saved), stream); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const Compression compression = (data[0] & 1) != 0 ? Compression::gzip : Compression::zlib;
  const std::span<const std::uint8_t> input(data + 2, size - 2);
  static MemoryFile file;
  file.set((data[0] & 2) != 0 ? Bytes(input.begin(), input.end())
                              : pack(input, compression, data[1]));
  check(StoredFile::open(file.path(), (data[0] & 4) != 0 ? IoMode::mapped : IoMode::pread),
        compression, input.last(std::min<std::size_t>(input.size(), 12)));
  return 0;
}
