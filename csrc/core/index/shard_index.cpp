#include "core/index/shard_index.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/storage/fault_guard.h"

namespace tfrfast {
namespace {

// Returns the damage that has a record before it and a record after it.
std::vector<Damage> between_frames(const std::vector<Damage>& damage, std::uint64_t record_count) {
  std::vector<Damage> gaps;
  for (const Damage& each : damage) {
    if (each.records_before > 0 && each.records_before < record_count) gaps.push_back(each);
  }
  return gaps;
}

// Whether every frame has space before the next frame. Branch-free.
bool have_space_for_frames(std::span<const std::uint64_t> offsets) noexcept {
  bool ascends = true;
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    ascends &= offsets[i] >= offsets[i - 1] && offsets[i] - offsets[i - 1] >= kFrameOverhead;
  }
  return ascends;
}

}  // namespace

ShardIndex::ShardIndex(const ShardFacts& facts, PackedBytes offsets, std::vector<Damage> damage,
                       std::shared_ptr<const SeekPoints> seek_points)
    : facts_(facts),
      owned_offsets_(std::move(offsets)),
      offsets_(owned_offsets_.view()),
      damage_(std::move(damage)),
      seek_points_(std::move(seek_points)),
      gaps_(between_frames(damage_, record_count())) {}

ShardIndex::ShardIndex(const ShardFacts& facts, IndexSource source, const PackedOffsets& offsets,
                       std::vector<std::uint32_t> page_crcs, std::vector<Damage> damage,
                       std::shared_ptr<const SeekPoints> seek_points)
    : facts_(facts),
      source_(std::move(source)),
      offsets_(offsets),
      page_crcs_(std::move(page_crcs)),
      unchecked_(std::make_unique<std::atomic<bool>[]>(page_crcs_.size())),
      damage_(std::move(damage)),
      seek_points_(std::move(seek_points)),
      gaps_(between_frames(damage_, record_count())) {
  for (std::size_t page = 0; page < page_crcs_.size(); ++page) unchecked_[page] = true;
}

void ShardIndex::check_page(std::uint64_t page) const {
  constexpr std::uint64_t kPageBlocks = PackedOffsets::kPageOffsets / PackedOffsets::kBlockOffsets;
  const std::uint64_t first = page * PackedOffsets::kPageOffsets;
  const std::uint64_t last = std::min(first + PackedOffsets::kPageOffsets, offsets_.size()) - 1;
  bool intact = false;
  bool ascends = true;
  // The first entry is the offset before the block.
  std::uint64_t block[1 + PackedOffsets::kBlockOffsets];
  const bool readable = run_guarded([&] {
    std::uint32_t crc = 0;
    intact = offsets_.checksum(page, &crc) && crc == page_crcs_[page];
    if (!intact) return;
    if (first > 0) block[0] = offsets_[first - 1];
    for (std::uint64_t i = 0; i < kPageBlocks && first + i * PackedOffsets::kBlockOffsets <= last;
         ++i) {
      const std::size_t count = offsets_.unpack(page * kPageBlocks + i, block + 1);
      const bool is_first = first + i == 0;
      ascends = ascends && have_space_for_frames(
                               std::span(block).subspan(is_first ? 1 : 0, count + !is_first));
      block[0] = block[count];
    }
  });
  const auto refuse = [&](const std::string& how) {
    throw Error(ErrorKind::stale_index,
                "Index '" + source_.path + how + " Build it again: `tfrfast index --force`.",
                {source_.path, static_cast<std::int64_t>(first), {}});
  };
  const std::string records = std::to_string(first) + " to " + std::to_string(last);
  const std::string entries = "' is damaged: its entries for records " + records;
  if (!readable) refuse(entries + " can no longer be read.");
  if (!intact) refuse(entries + " do not match their checksum.");
  if (!ascends) refuse("' is damaged: of the records " + records + " some begin inside others.");
  unchecked_[page].store(false, std::memory_order_release);
}

void ShardIndex::check_pages() const {
  for (std::uint64_t page = 0; page < page_crcs_.size(); ++page) {
    if (unchecked_[page]) check_page(page);
  }
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
  return run_guarded([&] { covers = adds_up(); }) && covers;
}

bool ShardIndex::adds_up() const noexcept {
  const std::uint64_t records = record_count();
  std::uint64_t end = 0;     // end of the bytes covered so far
  std::uint64_t record = 0;  // the next record
  for (const Damage& each : damage_) {
    if (each.records_before < record || each.records_before > records) return false;
    if (each.records_before > record) {
      if (offsets_[record] != end) return false;
      record = each.records_before;
      end = record == records ? offsets_[record] : each.begin;
      const std::uint64_t last = offsets_[record - 1];
      if (end < last || end - last < kFrameOverhead) return false;
    }
    if (each.begin != end || each.end < end) return false;
    end = each.end;
  }
  if (record == records) return end == facts_.stream_bytes && (record > 0 || offsets_[0] == 0);
  return offsets_[record] == end && offsets_[records] == facts_.stream_bytes;
}

Frame ShardIndex::frame(std::uint64_t number) const {
  check(number);
  PackedOffsets::Pair pair = {};
  Frame frame;
  if (!run_guarded([&] { pair = offsets_.pair(number); }) ||
      !decode(number, pair.begin, pair.next, &frame)) {
    throw_nonsense(number);
  }
  return frame;
}

PackedBytes ShardIndex::copy_packed() const {
  check_pages();
  const auto blocks = offsets_.blocks();
  const auto residuals = offsets_.residuals();
  PackedBytes copy{std::vector<OffsetBlock>(blocks.size()),
                   std::vector<std::uint8_t>(residuals.size()), offsets_.size()};
  if (!run_guarded([&] {
        std::copy(blocks.begin(), blocks.end(), copy.blocks.data());
        std::copy(residuals.begin(), residuals.end(), copy.residuals.data());
      })) {
    throw_nonsense(0);
  }
  return copy;
}

bool ShardIndex::has_same_entries(const ShardIndex& other) const {
  if (record_count() != other.record_count() || damage_ != other.damage_) return false;
  check_pages();
  other.check_pages();
  std::uint64_t here[PackedOffsets::kBlockOffsets];
  std::uint64_t there[PackedOffsets::kBlockOffsets];
  for (std::uint64_t block = 0; block < offsets_.blocks().size(); ++block) {
    bool same = false;
    if (!run_guarded([&] {
          const std::size_t count = offsets_.unpack(block, here);
          other.offsets_.unpack(block, there);
          same = std::equal(here, here + count, there);
        })) {
      throw_nonsense(block * PackedOffsets::kBlockOffsets);
    }
    if (!same) return false;
  }
  return true;
}

void ShardIndex::throw_nonsense(std::uint64_t number) const {
  throw Error(ErrorKind::stale_index,
              "Index '" + source_.path + "' places record " + std::to_string(number) +
                  " where its shard has no space for it, or can no longer be read. Build it again: "
                  "`tfrfast index --force`.",
              {source_.path, static_cast<std::int64_t>(number), {}});
}

}  // namespace tfrfast
