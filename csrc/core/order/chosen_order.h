// Gives only chosen records, each as often as it was chosen, in the order of another Order.
// Python's orders with `indices=` are ChosenOrders.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/order/order.h"

namespace tfrfast {

// Holds 8 bytes per chosen record.
class ChosenOrder final : public Order {
 public:
  static constexpr const char* kName = "chosen";

  // Where `order` has record i, this order has record indices[i]. Throws Error(invalid) unless
  // every index is less than `records` and the number of indices equals `order`'s records.
  ChosenOrder(std::shared_ptr<const Order> order, std::vector<std::int64_t> indices,
              std::int64_t records);
  static std::shared_ptr<const Order> decode(Decoder& decoder);

  std::unique_ptr<const EpochOrder> of_epoch(std::uint64_t seed,
                                             std::uint64_t epoch) const override;
  std::shared_ptr<const Order> over(std::int64_t records) const override;
  std::string describe_shuffle(std::uint64_t seed) const override {
    return order_->describe_shuffle(seed);
  }
  std::string describe_records() const override;
  void encode(Encoder& encoder) const override;

 private:
  std::shared_ptr<const Order> order_;
  std::vector<std::int64_t> indices_;
};

}  // namespace tfrfast
