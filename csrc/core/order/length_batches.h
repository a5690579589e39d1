// Batches of records of similar length, in random order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/order/compact_numbers.h"
#include "core/order/counted_order.h"

namespace tfrfast {

// Every position is a batch. Records fall into buckets. In each epoch, every bucket is shuffled and
// cut into batches of the bucket's number of rows; the last batch may have fewer. Then the batches
// of all buckets are shuffled. docs/permutation.md specifies the order.
//
// Immutable. Any number of threads. Holds 4 bytes per record.
class LengthBatches final : public CountedOrder {
 public:
  static constexpr const char* kName = "by tokens";

  struct Bucket {
    std::int64_t records = 0;
    std::int64_t rows = 1;  // of a batch
  };

  // A batch's rows times its longest length are at most `tokens`. Throws Error(invalid) for a
  // longer record.
  LengthBatches(CountedRecords counted, std::int64_t tokens);
  static std::shared_ptr<const Order> decode(Decoder& decoder);

  std::int64_t max_rows() const noexcept override { return max_rows_; }
  std::unique_ptr<const EpochOrder> of_epoch(std::uint64_t seed,
                                             std::uint64_t epoch) const override;
  std::string describe_shuffle(std::uint64_t seed) const override;
  std::string describe_records() const override;

 private:
  friend class LengthEpoch;
  struct Sorted;

  LengthBatches(CountedRecords counted, std::int64_t tokens, Sorted sorted);
  static Sorted sort(const CountedRecords& counted, std::int64_t tokens);
  void encode_options(Encoder& encoder) const override { encoder.integer(tokens_); }

  std::int64_t tokens_;
  std::vector<Bucket> buckets_;
  CompactNumbers members_;                   // bucket by bucket
  std::vector<std::int64_t> first_members_;  // of each bucket
  // of each bucket; the last entry is the number of all batches
  std::vector<std::int64_t> first_batches_;
  std::int64_t max_rows_ = 1;
};

}  // namespace tfrfast
