#include "core/order/in_order.h"

#include <algorithm>

namespace tfrfast {
namespace {

class InOrderEpoch final : public EpochOrder {
 public:
  void evaluate(const std::int64_t* positions, std::size_t count,
                std::int64_t* out) const noexcept override {
    if (positions != out) std::copy_n(positions, count, out);
  }
};

}  // namespace

std::shared_ptr<const Order> InOrder::decode(Decoder& decoder) {
  return std::make_shared<const InOrder>(decoder.integer());
}

std::unique_ptr<const EpochOrder> InOrder::of_epoch(std::uint64_t, std::uint64_t) const {
  return std::make_unique<const InOrderEpoch>();
}

}  // namespace tfrfast
