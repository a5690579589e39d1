// Gives the records in the order of their shards, the same in every epoch.
#pragma once

#include <memory>
#include <string>

#include "core/order/order.h"

namespace tfrfast {

class InOrder final : public Order {
 public:
  static constexpr const char* kName = "none";  // no shuffle

  explicit InOrder(std::int64_t records) : Order(kName, records, records) {}
  static std::shared_ptr<const Order> decode(Decoder& decoder);

  std::unique_ptr<const EpochOrder> of_epoch(std::uint64_t, std::uint64_t) const override;
  std::shared_ptr<const Order> over(std::int64_t records) const override {
    return std::make_shared<const InOrder>(records);
  }
  std::string describe_shuffle(std::uint64_t) const override { return "shuffle=none"; }
  void encode(Encoder& encoder) const override { encoder.integer(records()); }
};

}  // namespace tfrfast
