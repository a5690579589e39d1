#include "core/order/weighted.h"

#include <algorithm>
#include <utility>

#include "core/order/permutation.h"
#include "core/order/ranges.h"
#include "core/order/siphash.h"

namespace tfrfast {
namespace {

// Draw number d falls on weight (d * sum + offset) / draws, and takes the record that owns the
// weight. So the draws are evenly spaced, and each record's share is rounded.
class WeightedEpoch final : public EpochOrder {
 public:
  WeightedEpoch(std::unique_ptr<const EpochOrder> order, const std::vector<std::int64_t>& sums,
                std::int64_t draws, std::uint64_t random) noexcept
      : order_(std::move(order)),
        sums_(&sums),
        draws_(static_cast<Wide>(draws)),
        sum_(sums.empty() ? 0 : static_cast<Wide>(sums.back())),
        offset_(static_cast<Wide>(random) * sum_ >> 64) {}

  void evaluate(const std::int64_t* positions, std::size_t count,
                std::int64_t* out) const override {
    order_->evaluate(positions, count, out);
    for (std::size_t i = 0; i < count; ++i) {
      const Wide place = (static_cast<Wide>(out[i]) * sum_ + offset_) / draws_;
      out[i] = std::upper_bound(sums_->begin(), sums_->end(), static_cast<std::int64_t>(place)) -
               sums_->begin();
    }
  }

 private:
  using Wide = unsigned __int128;

  std::unique_ptr<const EpochOrder> order_;
  const std::vector<std::int64_t>* sums_;
  Wide draws_;
  Wide sum_;
  Wide offset_;  // less than sum_
};

}  // namespace

Weighted::Weighted(std::shared_ptr<const Order> order, const std::vector<std::int64_t>& weights)
    : Order(kName, order->positions(), static_cast<std::int64_t>(weights.size()), order->streams()),
      order_(std::move(order)) {
  if (order_->records() != order_->positions() || order_->unit() != 1) {
    throw Error(
        ErrorKind::invalid,
        "Weighted draws need an order with as many positions as records, and units of one record.");
  }
  sums_.reserve(weights.size());
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] < 0 || weights[i] > kMaxWeightSum - sum) {
      refuse("weights[" + std::to_string(i) + "]", weights[i],
             "0 or more, and all together at most " + std::to_string(kMaxWeightSum));
    }
    sum += weights[i];
    sums_.push_back(sum);
  }
  if (sum == 0 && positions() > 0) {
    throw Error(ErrorKind::invalid, "weights need a record whose weight is above 0.");
  }
}

std::vector<std::int64_t> Weighted::weights() const {
  std::vector<std::int64_t> weights(sums_);
  for (std::size_t i = weights.size(); i-- > 1;) weights[i] -= weights[i - 1];
  return weights;
}

std::shared_ptr<const Order> Weighted::decode(Decoder& decoder) {
  std::shared_ptr<const Order> order = decode_order(decoder);
  return std::make_shared<const Weighted>(std::move(order), decoder.integers());
}

void Weighted::encode(Encoder& encoder) const {
  encode_order(encoder, *order_);
  encoder.integers(weights());
}

std::unique_ptr<const EpochOrder> Weighted::of_epoch(std::uint64_t seed,
                                                     std::uint64_t epoch) const {
  const std::uint64_t random = siphash(derive_key(KeyPurpose::draws, seed, epoch), {0});
  return std::make_unique<const WeightedEpoch>(order_->of_epoch(seed, epoch), sums_, positions(),
                                               random);
}

// Even with a fixed order, the seed decides which records are rounded up.
std::string Weighted::describe_shuffle(std::uint64_t seed) const {
  return order_->describe_shuffle(seed) + " draws=" + std::to_string(positions()) +
         " drawn_by=" + std::to_string(seed);
}

std::string Weighted::describe_records() const {
  return Order::describe_records() + " weights=" + std::to_string(siphash_of(sums_));
}

}  // namespace tfrfast
