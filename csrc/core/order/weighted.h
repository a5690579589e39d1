// Gives records in proportion to their weights, in the order of another Order.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/order/order.h"

namespace tfrfast {

inline constexpr std::int64_t kMaxWeightSum = std::int64_t{1} << 62;

// An epoch draws as many records as `order` has positions. Each record comes as often as its weight
// says, rounded down or up. Other records are rounded up in each epoch. docs/permutation.md
// specifies the draws. Holds 8 bytes per record.
class Weighted final : public Order {
 public:
  static constexpr const char* kName = "weighted";

  // weights[i] belongs to record i. Throws Error(invalid) for a weight below 0, a sum above
  // kMaxWeightSum, and a sum of 0 if an epoch has draws.
  Weighted(std::shared_ptr<const Order> order, const std::vector<std::int64_t>& weights);
  static std::shared_ptr<const Order> decode(Decoder& decoder);

  std::vector<std::int64_t> weights() const;

  std::unique_ptr<const EpochOrder> of_epoch(std::uint64_t seed,
                                             std::uint64_t epoch) const override;
  std::string describe_shuffle(std::uint64_t seed) const override;
  std::string describe_records() const override;
  void encode(Encoder& encoder) const override;

 private:
  std::shared_ptr<const Order> order_;
  std::vector<std::int64_t> sums_;  // cumulative weights, each with its own record's weight
};

}  // namespace tfrfast
