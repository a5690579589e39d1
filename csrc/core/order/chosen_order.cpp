#include "core/order/chosen_order.h"

#include <utility>

#include "core/order/ranges.h"
#include "core/order/siphash.h"

namespace tfrfast {
namespace {

class ChosenEpoch final : public EpochOrder {
 public:
  ChosenEpoch(std::unique_ptr<const EpochOrder> order, const std::int64_t* indices) noexcept
      : order_(std::move(order)), indices_(indices) {}

  void evaluate(const std::int64_t* positions, std::size_t count,
                std::int64_t* out) const override {
    order_->evaluate(positions, count, out);
    for (std::size_t i = 0; i < count; ++i) out[i] = indices_[out[i]];
  }

 private:
  std::unique_ptr<const EpochOrder> order_;
  const std::int64_t* indices_;
};

}  // namespace

ChosenOrder::ChosenOrder(std::shared_ptr<const Order> order, std::vector<std::int64_t> indices,
                         std::int64_t records)
    : Order(kName, order->positions(), records, order->streams()),
      order_(std::move(order)),
      indices_(std::move(indices)) {
  const auto count = static_cast<std::int64_t>(indices_.size());
  if (order_->records() != count) {
    refuse("the number of indices", count,
           "that of the records in their order, which is " + std::to_string(order_->records()));
  }
  for (std::size_t i = 0; i < indices_.size(); ++i) {
    if (indices_[i] >= 0 && indices_[i] < records) continue;
    refuse("indices[" + std::to_string(i) + "]", indices_[i],
           "a record number: 0 or more and less than num_records, which is " +
               std::to_string(records));
  }
}

std::shared_ptr<const Order> ChosenOrder::decode(Decoder& decoder) {
  std::shared_ptr<const Order> order = decode_order(decoder);
  const std::int64_t records = decoder.integer();
  return std::make_shared<const ChosenOrder>(std::move(order), decoder.integers(), records);
}

void ChosenOrder::encode(Encoder& encoder) const {
  encode_order(encoder, *order_);
  encoder.integer(records());
  encoder.integers(indices_);
}

std::unique_ptr<const EpochOrder> ChosenOrder::of_epoch(std::uint64_t seed,
                                                        std::uint64_t epoch) const {
  return std::make_unique<const ChosenEpoch>(order_->of_epoch(seed, epoch), indices_.data());
}

std::shared_ptr<const Order> ChosenOrder::over(std::int64_t records) const {
  return std::make_shared<const ChosenOrder>(order_, indices_, records);
}

std::string ChosenOrder::describe_records() const {
  return Order::describe_records() + " indices=" + std::to_string(indices_.size()) + ":" +
         std::to_string(siphash_of(indices_));
}

}  // namespace tfrfast
