// A permutation of all records, new in each epoch. Any record may stand at any position.
#pragma once

#include <memory>
#include <string>

#include "core/order/order.h"

namespace tfrfast {

class Shuffle final : public Order {
 public:
  static constexpr const char* kName = "exact";

  explicit Shuffle(std::int64_t records) : Order(kName, records, records) {}
  static std::shared_ptr<const Order> decode(Decoder& decoder);

  std::unique_ptr<const EpochOrder> of_epoch(std::uint64_t seed,
                                             std::uint64_t epoch) const override;
  std::shared_ptr<const Order> over(std::int64_t records) const override {
    return std::make_shared<const Shuffle>(records);
  }
  std::string describe_shuffle(std::uint64_t seed) const override {
    return "shuffle=exact seed=" + std::to_string(seed);
  }
  void encode(Encoder& encoder) const override { encoder.integer(records()); }
};

}  // namespace tfrfast
