// Walks a shard of any bytes. The walk over its headers stays inside windows of any size. The walk
// after damage agrees with the reference walk, mapped and by pread. A walk that stops at the first
// bad header agrees up to there. Records that claim more bytes than any memory has, alone or
// together, are an error.
#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>

#include "core/base/error.h"
#include "core/index/frame_walk.h"
#include "core/index/opening.h"
#include "core/index/shard_set.h"
#include "core/read/reader.h"
#include "core/shard/framing.h"
#include "core/storage/stored_file.h"
#include "memory_file.h"
#include "reference_walk.h"

using namespace tfrfast;

namespace {

using Bytes = std::vector<std::uint8_t>;

// Almost no random header has a valid CRC. So the input is a program that writes frames and nearly
// intact frames.
Bytes make_shard(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kMaxBytes = 1 << 13;
  Bytes shard;
  const auto append = [&](const std::uint8_t* bytes, std::size_t count) {
    shard.insert(shard.end(), bytes, bytes + count);
  };
  std::size_t at = 0;
  const auto take = [&](std::size_t count) {
    const std::uint8_t* taken = data + at;
    count = count < size - at ? count : size - at;
    at += count;
    return std::pair(taken, count);
  };
  while (at < size && shard.size() < kMaxBytes) {
    const std::uint8_t verb = data[at++];
    const std::size_t count = verb >> 3;
    std::uint8_t header[kHeaderBytes];
    std::uint8_t footer[kFooterBytes];
    switch (verb & 7) {
      case 0:    // a frame
      case 1:    // a frame with a bad payload
      case 2: {  // a frame with a bad header
        const auto [bytes, length] = take(count);
        encode_header(length, header);
        encode_footer(masked_crc32c(bytes, length), footer);
        if ((verb & 7) == 1) footer[0] ^= 1;
        if ((verb & 7) == 2) header[count % kHeaderBytes] ^= 1;
        append(header, sizeof header);
        append(bytes, length);
        append(footer, sizeof footer);
        break;
      }
      case 3: {  // a header with any length
        const auto [bytes, length] = take(count % 9);
        std::uint64_t promised = 0;
        std::memcpy(&promised, bytes, length);
        encode_header(promised, header);
        append(header, sizeof header);
        break;
      }
      case 4: {  // any bytes
        const auto [bytes, length] = take(count);
        append(bytes, length);
        break;
      }
      case 5:  // a bit flipped somewhere
        if (!shard.empty()) shard[shard.size() - 1 - count * 7 % shard.size()] ^= 1 << (count % 8);
        break;
      case 6:  // bytes missing
        shard.resize(shard.size() - (count < shard.size() ? count : shard.size()));
        break;
      case 7:  // the beginning of the shard again, so that payloads contain frames
        shard.insert(shard.end(), shard.begin(),
                     shard.begin() + static_cast<std::ptrdiff_t>(shard.size() / (count + 1)));
        break;
    }
  }
  return shard;
}

void check_window(const Bytes& shard, std::uint64_t cut, std::size_t capacity) {
  // Exactly the window's bytes on the heap, so that a read past its end is noticed.
  const std::uint64_t end = cut < shard.size() ? shard.size() - cut : shard.size();
  const auto bytes = std::make_unique<std::uint8_t[]>(end);
  if (end != 0) std::memcpy(bytes.get(), shard.data(), end);
  std::vector<std::uint64_t> offsets(capacity);
  const WalkStep step =
      walk_frames({bytes.get(), 0, end, shard.size()}, 0, offsets.data(), capacity);
  require(step.frames <= capacity);
  require(step.next <= shard.size());
  require((step.stop == WalkStop::clean_end) <= (step.next == shard.size()));
  require((step.stop == WalkStop::out_of_space) <= (step.frames == capacity));
  std::uint64_t expected = 0;
  for (std::size_t i = 0; i < step.frames; ++i) {
    require(offsets[i] == expected);
    require(reference::header_holds(shard, offsets[i]));
    expected += kFrameOverhead + reference::number_at(shard, offsets[i], 8);
  }
  require(expected == step.next);
}

void check_walk(const std::string& path, IoMode io, const reference::Walk& expected,
                std::uint64_t shard_bytes) {
  std::uint64_t done = 0;
  const auto file = StoredFile::open(path, io);
  WalkedFrames found = walk_shard(file, [&](std::uint64_t bytes) { done += bytes; });
  require(done == shard_bytes);
  require(found.offsets.unpack() == expected.offsets);
  require(found.damage.size() == expected.damage.size());
  for (std::size_t i = 0; i < found.damage.size(); ++i) {
    const Damage& a = found.damage[i];
    const reference::Damage& b = expected.damage[i];
    require(static_cast<int>(a.kind) == b.kind && a.begin == b.begin && a.end == b.end);
    require(a.records_before == b.records_before && a.records_lost == b.records_lost);
  }
  require(index_of(*file, Compression::none, std::move(found), true)->covers_shard());

  // A walk that stops at a bad header finds the same frames up to there.
  const WalkedFrames stopped =
      walk_shard(StoredFile::open(path, io), nullptr, Compression::none, AtDamage::stop);
  require(stopped.damage.empty() == expected.damage.empty());
  const bool stops = !expected.damage.empty() && expected.damage.front().kind == 1;
  require(stopped.is_whole == !stops);
  const std::size_t records =
      stops ? expected.damage.front().records_before : expected.offsets.size() - 1;
  const std::vector<std::uint64_t> offsets = stopped.offsets.unpack();
  require(offsets.size() == records + 1);
  require(std::equal(offsets.begin(), offsets.end() - 1, expected.offsets.begin()));
  if (!stopped.damage.empty()) {
    require(stopped.damage.front().begin == expected.damage.front().begin);
  }
}

// The shard ends with a huge record of zeros, for which only a sparse file has space. One batch
// reads the record several times, so the sum of payloads wraps, for example to 0.
void check_huge_records(MemoryFile& file, const reference::Walk& walk, std::uint64_t shard_bytes,
                        std::uint8_t how) {
  if (!walk.damage.empty()) return;
  const std::uint64_t huge = std::uint64_t{1} << (45 + how % 18);
  std::uint8_t header[kHeaderBytes];
  encode_header(huge, header);
  file.append(header, sizeof header);
  file.extend_to(shard_bytes + kFrameOverhead + huge);
  ShardSetOptions options;
  options.io = (how & 1) != 0 ? IoMode::mapped : IoMode::pread;
  options.index.use = IndexUse::memory;
  const std::vector<std::string> paths(1 + how / 32, file.path());
  const Reader reader(ShardSet::open(paths, options), {});
  require(reader.record_count() == paths.size() * walk.offsets.size());
  std::vector<std::int64_t> records(reader.record_count());
  std::iota(records.begin(), records.end(), std::int64_t{0});
  bool refused = false;
  try {
    reader.read(records);
  } catch (const Error& error) {
    refused = error.kind() == ErrorKind::memory;
  }
  require(refused);
  const Reader::Range range = reader.read_range(records.size() - 1, records.size());
  require(range.error && range.next == records.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static MemoryFile file;
  if (size < 3) return 0;
  const bool as_it_is = (data[0] & 1) != 0;
  const Bytes shard = as_it_is ? Bytes(data + 3, data + size) : make_shard(data + 3, size - 3);
  check_window(shard, data[2], data[1] % 8);

  file.set(shard);
  const reference::Walk expected = reference::walk(shard);
  check_walk(file.path(), IoMode::mapped, expected, shard.size());
  check_walk(file.path(), IoMode::pread, expected, shard.size());
  if ((data[0] & 2) != 0) check_huge_records(file, expected, shard.size(), data[2]);
  return 0;
}
