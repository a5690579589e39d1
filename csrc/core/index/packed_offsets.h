// Stores ascending offsets in few bits each. Any offset is found in constant time.
//
// Each block of 128 offsets has a line with the slope from its first offset to its last, shifted
// down until no offset lies below the line. The block stores the distance of each offset from the
// line, the residual:
//
//   offset(j) = base + floor(slope * j / 256) + residual(j)
//
// The residuals of a block have one width. If a block's offsets are too large for a base, base and
// slope are zero, and the residuals are the offsets themselves, in 64 bits.
//
// With a share of the block's header, an offset takes about 10 bits for a small record, 21 for an
// image, and 1 if all records have one length. A random lookup among ten million offsets takes 14
// ns for small records and 26 ns for images; a plain array of 8-byte offsets takes 22 ns. If the
// offsets are in the processor's cache, a lookup takes 4 ns more than in the array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace tfrfast {

// In index files: little-endian.
struct OffsetBlock {
  std::uint64_t base_and_width = 0;  // the base, signed, in the upper 56 bits; the width below
  std::uint32_t slope = 0;           // in 1/256 bytes a record
  std::uint32_t residuals_at = 0;    // in units of 16 bytes
};
static_assert(sizeof(OffsetBlock) == 16);

// A view of packed offsets in other memory. The bytes may hold anything, and may change meanwhile:
// no function reads outside the bytes. Call inside run_guarded() if the bytes are mapped.
class PackedOffsets {
 public:
  static constexpr std::size_t kBlockOffsets = 128;
  static constexpr std::size_t kResidualUnit = 16;
  static constexpr std::uint64_t kMaxWidth = 57;  // one load of 8 bytes always holds this many bits
  // width of a block that stores the offsets themselves
  static constexpr std::uint64_t kWildWidth = 64;
  // This many zero bytes follow the residuals, so that the last residual can be loaded like any
  // other.
  static constexpr std::size_t kResidualPadding = 8;
  // Returned if a residual lies outside.
  static constexpr std::uint64_t kNowhere = ~std::uint64_t{0};

  // The offsets of a page. Each page of blocks has a checksum.
  static constexpr std::size_t kPageOffsets = 4096;

  static constexpr std::uint64_t block_count_of(std::uint64_t count) {
    return count / kBlockOffsets + (count % kBlockOffsets != 0);
  }
  static constexpr std::uint64_t page_count_of(std::uint64_t count) {
    return count / kPageOffsets + (count % kPageOffsets != 0);
  }

  PackedOffsets() = default;
  // `count` offsets, at least 1, in block_count_of(count) blocks. `residuals` has at least
  // kResidualPadding bytes.
  PackedOffsets(const OffsetBlock* blocks, std::span<const std::uint8_t> residuals,
                std::uint64_t count) noexcept
      : blocks_(blocks),
        residuals_(residuals.data()),
        last_load_(residuals.size() - kResidualPadding),
        count_(count) {}

  std::uint64_t size() const noexcept { return count_; }
  std::span<const OffsetBlock> blocks() const noexcept {
    return {blocks_, static_cast<std::size_t>(block_count_of(count_))};
  }
  std::span<const std::uint8_t> residuals() const noexcept {
    return {residuals_, static_cast<std::size_t>(last_load_ + kResidualPadding)};
  }

  std::uint64_t operator[](std::uint64_t number) const noexcept {
    return LoadedBlock(*this, number / kBlockOffsets).at(number % kBlockOffsets);
  }

  struct Pair {
    std::uint64_t begin;
    std::uint64_t next;
  };
  // Returns offset `number` and the next offset.
  Pair pair(std::uint64_t number) const noexcept {
    const LoadedBlock line(*this, number / kBlockOffsets);
    const std::uint64_t in_block = number % kBlockOffsets;
    const std::uint64_t begin = line.at(in_block);
    return {begin, in_block + 1 < kBlockOffsets ? line.at(in_block + 1) : operator[](number + 1)};
  }

  // The memory that pair() will read, to prefetch: first the block and, after the block has
  // arrived, the residual. (The caller prefetches: GCC removes a function that only prefetches.)
  // place_of_block() reads no memory.
  const void* place_of_block(std::uint64_t number) const noexcept {
    return blocks_ + number / kBlockOffsets;
  }
  const void* place_of_residual(std::uint64_t number) const noexcept {
    return LoadedBlock(*this, number / kBlockOffsets).residual_at(number % kBlockOffsets);
  }

  // Writes the offsets of a block to `out`: kBlockOffsets offsets, or fewer from the last block.
  // Returns the number of offsets.
  std::size_t unpack(std::uint64_t block, std::uint64_t* out) const noexcept;

  // Computes the CRC-32C of a page's blocks followed by their residuals; in the last page, of all
  // remaining residuals. False if the blocks' residuals are not contiguous, or have a width that
  // pack_offsets() never uses.
  bool checksum(std::uint64_t page, std::uint32_t* crc) const noexcept;

 private:
  // A block, loaded once.
  class LoadedBlock {
   public:
    LoadedBlock(const PackedOffsets& offsets, std::uint64_t block) noexcept : offsets_(offsets) {
      std::memcpy(&block_, offsets.blocks_ + block, sizeof block_);
      width_ = block_.base_and_width & 0xff;
      // pack_offsets() uses no other width. For other widths any mask will do.
      mask_ = width_ < 64 ? (std::uint64_t{1} << width_) - 1 : ~std::uint64_t{0};
    }
    std::uint64_t at(std::uint64_t in_block) const noexcept {
      const std::uint64_t load = load_at(in_block);
      if (load > offsets_.last_load_) return kNowhere;
      std::uint64_t word;
      std::memcpy(&word, offsets_.residuals_ + load, sizeof word);
      const std::uint64_t residual = (word >> (in_block * width_ % 8)) & mask_;
      return base() + (block_.slope * in_block >> 8) + residual;
    }
    const std::uint8_t* residual_at(std::uint64_t in_block) const noexcept {
      const std::uint64_t load = load_at(in_block);
      return offsets_.residuals_ + (load > offsets_.last_load_ ? 0 : load);
    }

   private:
    std::uint64_t load_at(std::uint64_t in_block) const noexcept {
      return block_.residuals_at * std::uint64_t{kResidualUnit} + in_block * width_ / 8;
    }
    std::uint64_t base() const noexcept {
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(block_.base_and_width) >> 8);
    }

    const PackedOffsets& offsets_;
    OffsetBlock block_;
    std::uint64_t width_;
    std::uint64_t mask_;
  };

  const OffsetBlock* blocks_ = nullptr;
  const std::uint8_t* residuals_ = nullptr;
  std::uint64_t last_load_ = 0;  // begin of the last 8 bytes of the residuals
  std::uint64_t count_ = 0;
};

// Packed offsets with their memory.
struct PackedBytes {
  std::vector<OffsetBlock> blocks;
  std::vector<std::uint8_t> residuals;
  std::uint64_t count = 0;

  PackedOffsets view() const noexcept { return {blocks.data(), residuals, count}; }
  std::vector<std::uint64_t> unpack() const;
};

// Packs offsets as they arrive, so that they never take 8 bytes each. Packed offsets can be read
// meanwhile.
class OffsetPacker {
 public:
  // Throws OutOfMemory if the residuals take more than 64 GiB.
  void append(std::span<const std::uint64_t> offsets);

  std::uint64_t size() const noexcept { return packed_.count + rest_.size(); }
  std::uint64_t operator[](std::uint64_t number) const noexcept {
    return number < packed_.count ? packed_.view()[number]
                                  : rest_[static_cast<std::size_t>(number - packed_.count)];
  }

  PackedBytes finish() &&;

 private:
  void pack(std::span<const std::uint64_t> block);

  PackedBytes packed_{{}, std::vector<std::uint8_t>(PackedOffsets::kResidualPadding), 0};
  std::vector<std::uint64_t> rest_;  // fewer than a block
};

// Packs numbers. Only ascending numbers get smaller. Equal numbers give equal bytes, whether
// appended at once or one by one.
PackedBytes pack_offsets(std::span<const std::uint64_t> offsets);

}  // namespace tfrfast
