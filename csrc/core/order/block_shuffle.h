// A shuffle for storage with slow seeks: a bijection of positions onto records, computed position
// by position, that reads only a few blocks of neighbouring records at any time.
// docs/permutation.md specifies the bijection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/order/order.h"
#include "core/order/permutation.h"

namespace tfrfast {

struct BlockShape {
  std::int64_t block_records = 1024;  // neighbouring records, read together
  std::int64_t window_blocks = 16;    // blocks that a stream mixes
  std::int64_t streams = 8;
};
inline constexpr std::int64_t kMaxBlockRecords = (std::int64_t{1} << 31) - 1;
inline constexpr std::int64_t kMaxWindowBlocks = (std::int64_t{1} << 31) - 1;
inline constexpr std::int64_t kMaxStreams = std::int64_t{1} << 16;

// Blocks are permuted and dealt to the streams in turn. Position p belongs to stream p % streams. A
// stream mixes its blocks window by window. The windows of different streams begin at different
// places, so the streams do not need new blocks at the same time. After every stream has got
// equally many blocks, at most `streams` blocks are left over: the tail. The tail's records are
// dealt out in slices at the end of the epoch. The records of a short block may stand anywhere,
// too.
//
// Immutable. Any number of threads. Holds 8 bytes per stream.
class BlockShuffle final : public Order {
 public:
  static constexpr const char* kName = "blocks";

  // Throws Error(invalid) unless each member of the shape is from 1 to its limit.
  BlockShuffle(std::int64_t records, const BlockShape& shape);
  static std::shared_ptr<const Order> decode(Decoder& decoder);

  // Refers to the BlockShuffle.
  class Epoch final : public EpochOrder {
   public:
    Epoch(const BlockShuffle& shuffle, std::uint64_t seed, std::uint64_t epoch) noexcept;

    void evaluate(const std::int64_t* positions, std::size_t count,
                  std::int64_t* out) const noexcept override;

   private:
    class Lookup;

    void evaluate_lanes(const std::int64_t* positions, std::size_t count, std::int64_t* out,
                        Lookup& lookup) const noexcept;
    std::uint64_t tweak(std::int64_t stream, std::int64_t window) const noexcept;

    const BlockShuffle* shuffle_;
    SipKey key_;
    RoundKeys keys_;
    Permutation blocks_;
    std::int64_t tail_entry_;   // in the permuted list of blocks
    std::int64_t short_entry_;  // -1 if all blocks are full
  };

  std::unique_ptr<const EpochOrder> of_epoch(std::uint64_t seed,
                                             std::uint64_t epoch) const override;
  std::shared_ptr<const Order> over(std::int64_t records) const override {
    return std::make_shared<const BlockShuffle>(records, shape_);
  }
  std::string describe_shuffle(std::uint64_t seed) const override;
  void encode(Encoder& encoder) const override;

 private:
  BlockShape shape_;
  std::int64_t blocks_;         // includes the short block
  std::int64_t missing_;        // records missing in the last block
  std::int64_t stream_blocks_;  // blocks of each stream before the tail
  std::int64_t streamed_;       // positions before the tail, where each block belongs to a stream
  std::vector<std::int64_t> tail_slices_;  // begin of each stream's slice in the tail
};

}  // namespace tfrfast
