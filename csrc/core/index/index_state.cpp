#include "core/index/index_state.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/codec/seek_points.h"
#include "core/index/frame_finder.h"
#include "core/index/frame_samples.h"
#include "core/index/index_format.h"
#include "core/index/walking.h"
#include "core/storage/storage.h"

namespace tfrfast {
namespace {

constexpr std::uint64_t kSamples = 4;

bool record_fits(const ShardIndex& index, const StoredFile& file, std::uint64_t number) {
  const Frame frame = index.frame(number);
  std::uint8_t bytes[kHeaderBytes];
  file.read(frame.offset, bytes, sizeof bytes);
  const FrameHeader header = decode_header(bytes);
  return header_is_intact(header) && header.payload_bytes == frame.payload_bytes;
}

// Whether `fits` is true of the first and the last of `count` items, and of some evenly spaced
// items.
template <class Fits>
bool all_samples(std::uint64_t count, const Fits& fits) {
  const std::uint64_t samples = std::min(count, kSamples);
  if (samples == 1) return fits(0);
  for (std::uint64_t sample = 0; sample < samples; ++sample) {
    // In two steps, so that the product does not overflow.
    const std::uint64_t number =
        (count - 1) / (samples - 1) * sample + (count - 1) % (samples - 1) * sample / (samples - 1);
    if (!fits(number)) return false;
  }
  return true;
}

bool samples_fit(const ShardIndex& index, const StoredFile& file) {
  // Checking records of a compressed shard would require inflating.
  if (const SeekPoints* points = index.seek_points().get(); points != nullptr) {
    return all_samples(points->size(), [&](std::uint64_t number) {
      const Span span = (*points)[static_cast<std::size_t>(number)];
      return crc_of_sample(file, span.place.file_offset) == span.file_crc;
    });
  }
  return all_samples(index.record_count(),
                     [&](std::uint64_t number) { return record_fits(index, file, number); });
}

}  // namespace

ShardFacts facts_of(const FileFacts& file, std::uint64_t stream_bytes, Compression compression,
                    bool settled) {
  ShardFacts facts{file.bytes, file.mtime_ns, stream_bytes, compression};
  facts.settled = settled;
  if (file.version_lasts) facts.version = file.version;
  return facts;
}

bool is_in_state(const ShardFacts& facts, const FileFacts& now) noexcept {
  return facts.settled && facts.file_bytes == now.bytes && facts.mtime_ns == now.mtime_ns &&
         (!now.version_lasts || facts.version == now.version);
}

bool index_fits(const ShardIndex& index, const StoredFile& file) {
  const FileFacts& now = file.facts();
  if (!is_in_state(index.facts(), now)) return false;
  // Each sample would be a round trip, and every read asks for this version only.
  if (now.version_lasts && file.traits().is_remote) return true;
  return samples_fit(index, file);
}

bool has_claimed_damage(const ShardIndex& index, const StoredFile& file) {
  if (index.damage().empty() || file.traits().is_remote) return true;
  if (index.seek_points() != nullptr) return false;
  // Does not own the file, which outlives all uses here.
  const std::shared_ptr<const StoredFile> shard(std::shared_ptr<void>(), &file);
  const auto walker = walk(shard);
  FrameFinder finder(shard, [](std::uint64_t) {});
  for (const Damage& each : index.damage()) {
    if (each.begin > file.bytes() || each.records_before > index.record_count()) return false;
    // Otherwise the damage could begin inside a record.
    if (each.records_before > 0 && !record_fits(index, file, each.records_before - 1)) return false;
    if (file.bytes() - each.begin < kHeaderBytes) {
      if (each.kind != DamageKind::torn_header || each.end != file.bytes()) return false;
      continue;
    }
    const FrameHeader header = header_at(*walker, each.begin);
    if (header_is_intact(header)) {
      const std::uint64_t left = file.bytes() - each.begin;
      const bool is_torn = left < kFrameOverhead || header.payload_bytes > left - kFrameOverhead;
      if (!is_torn || each.kind != DamageKind::torn_payload || each.end != file.bytes()) {
        return false;
      }
      continue;
    }
    if (each.kind != DamageKind::bad_header && each.kind != DamageKind::lost_track) return false;
    const FrameFinder::FoundFrame found = finder.find(*walker, each.begin + 1);
    const bool is_lost = found.outcome == FrameFinder::SearchEnd::gave_up;
    if (found.at != each.end || is_lost != (each.kind == DamageKind::lost_track)) return false;
  }
  return true;
}

bool samples_differ(const ShardIndex& index, const StoredFile& file) {
  const auto& expected = index.facts().samples_crc;
  if (!expected || index.seek_points() != nullptr || file.facts().version_lasts) return false;
  const auto found = crc_of_samples(
      file, index.record_count(), [&](std::uint64_t number) { return index.frame(number).offset; });
  return found != expected;
}

ShardFacts facts_when_published(ShardFacts facts, const std::string& path) {
  const FileFacts file = examine_file(path);
  facts.settled =
      facts.by_writer && facts.file_bytes == file.bytes && facts.mtime_ns == file.mtime_ns;
  facts.version = file.version_lasts ? file.version : VersionTag();
  return facts;
}

}  // namespace tfrfast
