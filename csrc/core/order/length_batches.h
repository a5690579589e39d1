// Batches of records of similar length, in random order. Python's ByTokens chooses the buckets.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/order/order.h"

namespace tfrfast {

// Every position is a batch. Records fall into buckets. In each epoch, every bucket is shuffled and
// cut into batches of the bucket's number of rows; the last batch may have fewer. Then the batches
// of all buckets are shuffled. docs/permutation.md specifies the order.
//
// Immutable. Any number of threads. Holds 8 bytes per record.
class LengthBatches final : public Order {
 public:
  static constexpr const char* kName = "lengths";

  struct Bucket {
    std::int64_t records = 0;
    std::int64_t rows = 1;  // of a batch
  };

  // `members` holds the records of the first bucket, then of the second, and so on. Throws
  // Error(invalid) unless the buckets' counts add up to the number of members and each member is a
  // record.
  LengthBatches(std::vector<Bucket> buckets, std::vector<std::int64_t> members,
                std::int64_t records);
  static std::shared_ptr<const Order> decode(Decoder& decoder);

  std::int64_t max_rows() const noexcept override { return max_rows_; }
  std::unique_ptr<const EpochOrder> of_epoch(std::uint64_t seed,
                                             std::uint64_t epoch) const override;
  std::shared_ptr<const Order> over(std::int64_t records) const override;
  std::string describe_shuffle(std::uint64_t seed) const override;
  std::string describe_records() const override;
  const char* name() const noexcept override { return kName; }
  void encode(Encoder& encoder) const override;

 private:
  friend class LengthEpoch;

  std::vector<Bucket> buckets_;
  std::vector<std::int64_t> members_;
  std::vector<std::int64_t> first_members_;  // of each bucket
  // of each bucket; the last entry is the number of all batches
  std::vector<std::int64_t> first_batches_;
  std::int64_t max_rows_ = 1;
};

}  // namespace tfrfast
