#include "core/index/packed_offsets.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "core/base/memory.h"
#include "core/crc32c/crc32c.h"

namespace tfrfast {
namespace {

constexpr std::uint64_t kMaxSlope = std::numeric_limits<std::uint32_t>::max();
// A base has 56 bits with its sign. Any line under offsets up to this limit fits into a base.
constexpr std::uint64_t kMaxLineOffset = std::uint64_t{1} << 54;
constexpr std::uint64_t kMaxResidualUnits = std::numeric_limits<std::uint32_t>::max();

// The place of offset `in_block` on a line from 0.
std::uint64_t on_line(std::uint64_t slope, std::size_t in_block) {
  return slope * in_block >> 8;
}

struct FittedLine {
  std::uint64_t base = 0;
  std::uint64_t slope = 0;
  std::uint64_t width = PackedOffsets::kWildWidth;
};

// Rejected: a line by least squares and the narrowest strip around the offsets save 1 %, and the
// strip takes more than twice the time. Elias-Fano codes save two bits a record for images and cost
// one bit for small records, and each lookup has to search the upper bits. Lengths instead of
// offsets need a prefix sum for each lookup.
FittedLine fit_line(std::span<const std::uint64_t> offsets) {
  const auto [lowest, highest] = std::minmax_element(offsets.begin(), offsets.end());
  if (*highest > kMaxLineOffset) return {};
  const std::uint64_t rise =
      offsets.back() > offsets.front() ? offsets.back() - offsets.front() : 0;
  const std::uint64_t steps = std::max<std::size_t>(offsets.size() - 1, 1);
  const std::uint64_t slope = std::min((rise * 256 + steps / 2) / steps, kMaxSlope);
  auto low = std::numeric_limits<std::int64_t>::max();
  auto high = std::numeric_limits<std::int64_t>::min();
  for (std::size_t j = 0; j < offsets.size(); ++j) {
    const auto above = static_cast<std::int64_t>(offsets[j] - on_line(slope, j));
    low = std::min(low, above);
    high = std::max(high, above);
  }
  const auto width =
      static_cast<std::uint64_t>(std::bit_width(static_cast<std::uint64_t>(high - low)));
  return {static_cast<std::uint64_t>(low), slope, width};
}

// Appends the lowest `width` bits of each value, in words of 8 bytes.
class BitWriter {
 public:
  explicit BitWriter(std::vector<std::uint8_t>& bytes) : bytes_(bytes) {}

  void put(std::uint64_t value, std::uint64_t width) {
    word_ |= value << used_;
    if (used_ + width < 64) {
      used_ += width;
      return;
    }
    append();
    word_ = used_ == 0 ? 0 : value >> (64 - used_);
    used_ = used_ + width - 64;
  }
  void finish() {
    if (used_ > 0) append();
    word_ = used_ = 0;
  }

 private:
  void append() {
    const auto* const word = reinterpret_cast<const std::uint8_t*>(&word_);
    bytes_.insert(bytes_.end(), word, word + sizeof word_);
  }

  std::vector<std::uint8_t>& bytes_;
  std::uint64_t word_ = 0;
  std::uint64_t used_ = 0;
};

}  // namespace

void OffsetPacker::append(std::span<const std::uint64_t> offsets) {
  while (rest_.size() + offsets.size() >= PackedOffsets::kBlockOffsets) {
    const std::size_t count = PackedOffsets::kBlockOffsets - rest_.size();
    if (rest_.empty()) {
      pack(offsets.first(count));
    } else {
      rest_.insert(rest_.end(), offsets.begin(), offsets.begin() + static_cast<long>(count));
      pack(rest_);
      rest_.clear();
    }
    offsets = offsets.subspan(count);
  }
  rest_.insert(rest_.end(), offsets.begin(), offsets.end());
}

PackedBytes OffsetPacker::finish() && {
  if (!rest_.empty()) pack(rest_);
  rest_.clear();
  return std::move(packed_);
}

void OffsetPacker::pack(std::span<const std::uint64_t> block) {
  std::vector<std::uint8_t>& residuals = packed_.residuals;
  residuals.resize(residuals.size() - PackedOffsets::kResidualPadding);
  const FittedLine fit = fit_line(block);
  const std::size_t units = residuals.size() / PackedOffsets::kResidualUnit;
  if (units > kMaxResidualUnits) throw OutOfMemory(residuals.size());
  packed_.blocks.push_back({fit.base << 8 | fit.width, static_cast<std::uint32_t>(fit.slope),
                            static_cast<std::uint32_t>(units)});
  BitWriter bits(residuals);
  for (std::size_t j = 0; j < block.size(); ++j) {
    bits.put(block[j] - fit.base - on_line(fit.slope, j), fit.width);
  }
  bits.finish();
  residuals.insert(residuals.end(), PackedOffsets::kResidualPadding, 0);
  packed_.count += block.size();
}

PackedBytes pack_offsets(std::span<const std::uint64_t> offsets) {
  OffsetPacker packer;
  packer.append(offsets);
  return std::move(packer).finish();
}

std::vector<std::uint64_t> PackedBytes::unpack() const {
  std::vector<std::uint64_t> offsets(count);
  for (std::uint64_t block = 0; block < blocks.size(); ++block) {
    view().unpack(block, offsets.data() + block * PackedOffsets::kBlockOffsets);
  }
  return offsets;
}

std::size_t PackedOffsets::unpack(std::uint64_t block, std::uint64_t* out) const noexcept {
  const LoadedBlock line(*this, block);
  const auto count = static_cast<std::size_t>(
      std::min<std::uint64_t>(kBlockOffsets, count_ - block * kBlockOffsets));
  for (std::size_t j = 0; j < count; ++j) out[j] = line.at(j);
  return count;
}

bool PackedOffsets::checksum(std::uint64_t page, std::uint32_t* crc) const noexcept {
  constexpr std::uint64_t kPageBlocks = kPageOffsets / kBlockOffsets;
  const std::uint64_t blocks = block_count_of(count_);
  const std::uint64_t first = page * kPageBlocks;
  const std::uint64_t end = std::min(first + kPageBlocks, blocks);
  const auto residuals_at = [this](std::uint64_t block) {
    return blocks_[block].residuals_at * std::uint64_t{kResidualUnit};
  };
  const std::uint64_t begin_byte = page == 0 ? 0 : residuals_at(first);
  std::uint64_t end_byte = begin_byte;
  for (std::uint64_t block = first; block < end; ++block) {
    const std::uint64_t width = blocks_[block].base_and_width & 0xff;
    if (residuals_at(block) != end_byte || (width > kMaxWidth && width != kWildWidth)) return false;
    const std::uint64_t count =
        std::min(count_ - block * kBlockOffsets, std::uint64_t{kBlockOffsets});
    end_byte += (count * width + 63) / 64 * 8;
  }
  if (end == blocks) {
    if (end_byte != last_load_) return false;
    end_byte += kResidualPadding;
  } else if (residuals_at(end) != end_byte) {
    return false;
  }
  if (begin_byte > end_byte || end_byte > last_load_ + kResidualPadding) return false;
  *crc = crc32c(reinterpret_cast<const std::uint8_t*>(blocks_ + first),
                static_cast<std::size_t>(end - first) * sizeof(OffsetBlock));
  *crc = crc32c(residuals_ + begin_byte, static_cast<std::size_t>(end_byte - begin_byte), *crc);
  return true;
}

}  // namespace tfrfast
