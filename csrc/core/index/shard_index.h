// The place of every good record of a shard, and the shard's damaged bytes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/codec/codec.h"
#include "core/codec/seek_points.h"
#include "core/index/packed_offsets.h"
#include "core/shard/framing.h"
#include "core/storage/file_facts.h"

namespace tfrfast {

// A frame's place in the uncompressed shard.
struct Frame {
  std::uint64_t offset = 0;  // of the header
  std::uint64_t payload_bytes = 0;
};

enum class DamageKind : std::uint8_t {
  bad_header = 1,    // bytes between two good frames, or after the last one, are not a frame
  torn_header = 2,   // the shard ends inside a header
  torn_payload = 3,  // the shard ends inside a payload or its CRC
  // After a bad header come so many false headers that the walk gave up the rest of the shard.
  lost_track = 4,
  torn_stream = 5,  // the compressed data end inside a member
  // Compressed data cannot be inflated. An unknown number of bytes of the stream is missing.
  bad_stream = 6,
  // The walk stopped at a bad header and did not look beyond `end`. Never stored in an index file.
  unexplored = 7,
};

// Bytes [begin, end) hold no trustworthy record.
struct Damage {
  DamageKind kind = DamageKind::bad_header;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t records_before = 0;  // good records before the damage
  // Lost records. 1 if the length in the damaged header leads exactly to the next good frame, or if
  // the tail is torn. 0 if unknown.
  std::uint64_t records_lost = 0;
  friend bool operator==(const Damage&, const Damage&) = default;
};

// The facts about a whole shard.
struct ShardFacts {
  std::uint64_t file_bytes = 0;  // as stored
  std::int64_t mtime_ns = 0;
  std::uint64_t stream_bytes = 0;  // uncompressed size; offsets are of the uncompressed bytes
  Compression compression = Compression::none;
  VersionTag version = {};  // of the file; zeros if the storage's versions do not last
  // Any later change would show in the members above; see index_state.h.
  bool settled = false;
  // Made by the shard's writer, which gave the file a modification time that no write can give.
  bool by_writer = false;
  // The checksum of frame_samples.h. Only for plain local shards.
  std::optional<std::uint32_t> samples_crc = {};
};

// The file from which an index was loaded.
struct IndexSource {
  std::shared_ptr<const void> bytes = nullptr;  // kept alive
  std::string path = {};
};

// Immutable. Safe from many threads. Offsets lie in memory, or in a mapped index file whose pages
// are checked on first use: a page must match its CRC, and no record may begin inside another.
class ShardIndex {
 public:
  // `offsets` has one entry per record, plus the end of the last good frame.
  ShardIndex(const ShardFacts& facts, PackedBytes offsets, std::vector<Damage> damage,
             std::shared_ptr<const SeekPoints> seek_points = nullptr);
  ShardIndex(const ShardFacts& facts, const std::vector<std::uint64_t>& offsets,
             std::vector<Damage> damage, std::shared_ptr<const SeekPoints> seek_points = nullptr)
      : ShardIndex(facts, pack_offsets(offsets), std::move(damage), std::move(seek_points)) {}

  // Offsets in the memory of `source`, with the CRC-32C of each page.
  ShardIndex(const ShardFacts& facts, IndexSource source, const PackedOffsets& offsets,
             std::vector<std::uint32_t> page_crcs, std::vector<Damage> damage,
             std::shared_ptr<const SeekPoints> seek_points = nullptr);

  const ShardFacts& facts() const noexcept { return facts_; }
  std::uint64_t record_count() const noexcept { return offsets_.size() - 1; }
  std::span<const Damage> damage() const noexcept { return damage_; }
  // Null if the shard is not compressed.
  const std::shared_ptr<const SeekPoints>& seek_points() const noexcept { return seek_points_; }

  // Checks the entries of record `number`. After the first check of a page, costs one load. Throws
  // Error stale_index if the index file is damaged.
  void check(std::uint64_t number) const {
    if (unchecked_ == nullptr) return;
    const std::uint64_t first = number / PackedOffsets::kPageOffsets;
    const std::uint64_t last = (number + 1) / PackedOffsets::kPageOffsets;
    if (unchecked_[first].load(std::memory_order_acquire)) check_page(first);
    if (last != first && unchecked_[last].load(std::memory_order_acquire)) check_page(last);
  }

  // One more entry than records. Read entries after check(), inside run_guarded().
  const PackedOffsets& offsets() const noexcept { return offsets_; }

  // Decodes the frame of checked entries. False if no frame of this shard can have such entries.
  bool decode(std::uint64_t number, std::uint64_t begin, std::uint64_t next,
              Frame* frame) const noexcept {
    if (!gaps_.empty()) next = end_before_gap(number, next);
    if (begin > next || next > facts_.stream_bytes || next - begin < kFrameOverhead) return false;
    *frame = {begin, next - begin - kFrameOverhead};
    return true;
  }

  // check(), reading and decode() in one. Throws Error stale_index if decode() returns false.
  Frame frame(std::uint64_t number) const;
  // Whether good frames and damage together cover the shard from its first byte to its last. False
  // if the index can no longer be read.
  bool covers_shard() const noexcept;
  // Copies all checked offsets, with the end of the last good frame.
  PackedBytes copy_packed() const;
  [[noreturn]] void throw_nonsense(std::uint64_t number) const;

  // Whether this index and `other` have the same records and the same damage. Throws Error
  // stale_index if an index file is damaged.
  bool has_same_entries(const ShardIndex& other) const;

  // The index file's path; empty for an index built in memory.
  const std::string& origin() const noexcept { return source_.path; }

 private:
  void check_page(std::uint64_t page) const;
  void check_pages() const;
  bool adds_up() const noexcept;
  std::uint64_t end_before_gap(std::uint64_t number, std::uint64_t next) const noexcept;

  ShardFacts facts_;
  IndexSource source_;
  PackedBytes owned_offsets_;
  PackedOffsets offsets_;
  std::vector<std::uint32_t> page_crcs_;
  std::unique_ptr<std::atomic<bool>[]> unchecked_;  // a flag per page; null for offsets in memory
  std::vector<Damage> damage_;
  std::shared_ptr<const SeekPoints> seek_points_;
  std::vector<Damage> gaps_;  // the damage between two good frames
};

}  // namespace tfrfast
