#include "core/index/shard_index.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/crc32c/crc32c.h"
#include "core/storage/fault_guard.h"

namespace tfrfast {
namespace {

std::vector<Damage> with_frames_around(const std::vector<Damage>& damage,
                                       std::uint64_t record_count) {
  std::vector<Damage> gaps;
  for (const Damage& each : damage) {
    if (each.records_before > 0 && each.records_before < record_count) gaps.push_back(each);
  }
  return gaps;
}

// Whether each frame has room before the next one begins. Reads every offset once, without a
// branch.
bool ascends_by_frames(const std::uint64_t* offsets, std::size_t count) noexcept {
  bool ascends = true;
  for (std::size_t i = 1; i < count; ++i) {
    ascends &= offsets[i] >= offsets[i - 1] && offsets[i] - offsets[i - 1] >= kFrameOverhead;
  }
  return ascends;
}

}  // namespace

ShardIndex::ShardIndex(const ShardFacts& facts, std::vector<std::uint64_t> offsets,
                       std::vector<Damage> damage, std::shared_ptr<const SeekPoints> seek_points)
    : facts_(facts),
      owned_offsets_(std::move(offsets)),
      offsets_(owned_offsets_.data()),
      record_count_(owned_offsets_.size() - 1),
      damage_(std::move(damage)),
      seek_points_(std::move(seek_points)),
      gaps_(with_frames_around(damage_, record_count_)) {}

ShardIndex::ShardIndex(const ShardFacts& facts, IndexSource source, const std::uint64_t* offsets,
                       std::uint64_t record_count, std::vector<std::uint32_t> block_crcs,
                       std::vector<Damage> damage, std::shared_ptr<const SeekPoints> seek_points)
    : facts_(facts),
      source_(std::move(source)),
      offsets_(offsets),
      record_count_(record_count),
      block_crcs_(std::move(block_crcs)),
      unchecked_(std::make_unique<std::atomic<bool>[]>(block_crcs_.size())),
      damage_(std::move(damage)),
      seek_points_(std::move(seek_points)),
      gaps_(with_frames_around(damage_, record_count_)) {
  for (std::size_t block = 0; block < block_crcs_.size(); ++block) unchecked_[block] = true;
}

void ShardIndex::check_block(std::uint64_t block) const {
  const std::uint64_t first = block * kBlockOffsets;
  const auto count =
      static_cast<std::size_t>(std::min<std::uint64_t>(kBlockOffsets, record_count_ + 1 - first));
  std::uint32_t crc = 0;
  bool ascends = true;
  const bool readable = run_guarded([&] {
    crc = crc32c(reinterpret_cast<const std::uint8_t*>(offsets_ + first), count * sizeof *offsets_);
    ascends = ascends_by_frames(offsets_ + first, count);
    // Across the border to the block before, too.
    if (first > 0) ascends = ascends && ascends_by_frames(offsets_ + first - 1, 2);
  });
  if (!readable || crc != block_crcs_[block]) {
    throw Error(ErrorKind::stale_index,
                "Index '" + source_.path + "' is damaged: its entries for records " +
                    std::to_string(first) + " to " + std::to_string(first + count - 1) +
                    (readable ? " do not match their checksum." : " can no longer be read.") +
                    " Build it again: `tfrfast index --force`.",
                {source_.path, static_cast<std::int64_t>(first), {}});
  }
  if (!ascends) {
    throw Error(ErrorKind::stale_index,
                "Index '" + source_.path + "' is damaged: of the records " + std::to_string(first) +
                    " to " + std::to_string(first + count - 1) +
                    " some begin inside others. Build it again: `tfrfast index --force`.",
                {source_.path, static_cast<std::int64_t>(first), {}});
  }
  unchecked_[block].store(false, std::memory_order_release);
}

std::uint64_t ShardIndex::end_before_gap(std::uint64_t number, std::uint64_t next) const noexcept {
  const auto gap = std::lower_bound(
      gaps_.begin(), gaps_.end(), number + 1,
      [](const Damage& each, std::uint64_t records) { return each.records_before < records; });
  return gap != gaps_.end() && gap->records_before == number + 1 ? std::min(gap->begin, next)
                                                                 : next;
}

bool ShardIndex::covers_shard() const noexcept {
  bool covers = false;
  return run_guarded([&] { covers = covers_shard_by(offsets_); }) && covers;
}

bool ShardIndex::covers_shard_by(const std::uint64_t* offsets) const noexcept {
  std::uint64_t end = 0;     // of what has been covered
  std::uint64_t record = 0;  // the next one
  for (const Damage& each : damage_) {
    if (each.records_before < record || each.records_before > record_count_) return false;
    if (each.records_before > record) {
      if (offsets[record] != end) return false;
      record = each.records_before;
      end = record == record_count_ ? offsets[record] : each.begin;
      const std::uint64_t last = offsets[record - 1];
      if (end < last || end - last < kFrameOverhead) return false;
    }
    if (each.begin != end || each.end < end) return false;
    end = each.end;
  }
  if (record == record_count_) return end == facts_.stream_bytes && (record > 0 || *offsets == 0);
  return offsets[record] == end && offsets[record_count_] == facts_.stream_bytes;
}

Frame ShardIndex::frame(std::uint64_t number) const {
  check(number);
  std::uint64_t begin = 0;
  std::uint64_t next = 0;
  const std::uint64_t* entry = entries(number);
  Frame frame;
  if (!run_guarded([&] { begin = entry[0], next = entry[1]; }) ||
      !decode(number, begin, next, &frame)) {
    throw_nonsense(number);
  }
  return frame;
}

std::vector<std::uint64_t> ShardIndex::copy_offsets() const {
  bytes_for<std::uint64_t>(record_count_ + 1);
  std::vector<std::uint64_t> copy(record_count_ + 1);
  for (std::uint64_t first = 0; first <= record_count_; first += kBlockOffsets) {
    if (unchecked_ && unchecked_[first / kBlockOffsets]) check_block(first / kBlockOffsets);
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(kBlockOffsets, copy.size() - first));
    if (!run_guarded([&] { std::copy_n(offsets_ + first, count, copy.data() + first); })) {
      throw_nonsense(first);
    }
  }
  return copy;
}

bool ShardIndex::has_same_entries(const ShardIndex& other) const {
  if (record_count_ != other.record_count_ || damage_ != other.damage_) return false;
  for (std::uint64_t first = 0; first <= record_count_; first += kBlockOffsets) {
    const std::uint64_t last = std::min(first + kBlockOffsets, record_count_ + 1) - 1;
    for (const ShardIndex* each : {this, &other}) {
      if (each->unchecked_ && each->unchecked_[first / kBlockOffsets]) {
        each->check_block(first / kBlockOffsets);
      }
    }
    bool same = false;
    if (!run_guarded([&] {
          same = std::equal(offsets_ + first, offsets_ + last + 1, other.offsets_ + first);
        })) {
      throw_nonsense(first);
    }
    if (!same) return false;
  }
  return true;
}

void ShardIndex::throw_nonsense(std::uint64_t number) const {
  throw Error(ErrorKind::stale_index,
              "Index '" + source_.path + "' places record " + std::to_string(number) +
                  " where its shard has no room for it, or can no longer be read. Build it again: "
                  "`tfrfast index --force`.",
              {source_.path, static_cast<std::int64_t>(number), {}});
}

}  // namespace tfrfast
