#include "core/index/shard_index.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/crc32c/crc32c.h"
#include "core/shard/fault_guard.h"

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

ShardIndex::ShardIndex(const ShardFacts& facts, std::shared_ptr<const void> owner,
                       std::string origin, const std::uint64_t* offsets, std::uint64_t record_count,
                       std::vector<std::uint32_t> block_crcs, std::vector<Damage> damage,
                       std::shared_ptr<const SeekPoints> seek_points)
    : facts_(facts),
      owner_(std::move(owner)),
      origin_(std::move(origin)),
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
  const bool readable = run_guarded([&] {
    crc = crc32c(reinterpret_cast<const std::uint8_t*>(offsets_ + first), count * sizeof *offsets_);
  });
  if (!readable || crc != block_crcs_[block]) {
    throw Error(ErrorKind::stale_index,
                "Index '" + origin_ + "' is damaged: its entries for records " +
                    std::to_string(first) + " to " + std::to_string(first + count - 1) +
                    (readable ? " do not match their checksum." : " can no longer be read.") +
                    " Build it again: `tfrfast index --force`.",
                {origin_, static_cast<std::int64_t>(first), {}});
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

void ShardIndex::throw_nonsense(std::uint64_t number) const {
  throw Error(ErrorKind::stale_index,
              "Index '" + origin_ + "' places record " + std::to_string(number) +
                  " where its shard has no room for it, or can no longer be read. Build it again: "
                  "`tfrfast index --force`.",
              {origin_, static_cast<std::int64_t>(number), {}});
}

}  // namespace tfrfast
