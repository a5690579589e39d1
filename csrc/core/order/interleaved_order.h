// Interleaves files: takes a block of records from each of several files in turn, over and over.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/order/order.h"

namespace tfrfast {

// The order of tf.data's interleave(). Each slot holds a file. In every lap, each slot gives the
// next block of its file. A file's last block may be short. A slot whose file has ended with a
// whole block skips one lap. In the lap after the end, the slot gets the next file.
//
// The files come in a random order for each seed and epoch.
//
// Holds about 100 bytes per file.
class InterleavedOrder final : public Order {
 public:
  static constexpr const char* kName = "interleaved";

  // Throws Error(invalid) for less than one slot, for blocks of less than one record, for a
  // negative number of records, and for more than kMaxPermutationSize records together.
  InterleavedOrder(std::vector<std::int64_t> file_records, std::int64_t slots,
                   std::int64_t block_records = 1);
  static std::shared_ptr<const Order> decode(Decoder& decoder);

  std::unique_ptr<const EpochOrder> of_epoch(std::uint64_t seed,
                                             std::uint64_t epoch) const override;
  std::shared_ptr<const Order> over_files(const std::vector<std::int64_t>& firsts,
                                          std::int64_t records) const override;
  std::string describe_shuffle(std::uint64_t seed) const override;
  void encode(Encoder& encoder) const override;

 private:
  class Turns;
  class Epoch;

  std::shared_ptr<const Turns> turns_of(std::uint64_t seed, std::uint64_t epoch) const;

  std::vector<std::int64_t> file_records_;
  std::int64_t slots_;
  std::int64_t block_records_;

  // The last epoch's turns. A step takes a microsecond, and making the turns takes longer.
  struct Last {
    std::uint64_t seed = 0, epoch = 0;
    std::shared_ptr<const Turns> turns;
  };
  mutable std::mutex mutex_;
  mutable Last last_;
};

}  // namespace tfrfast
