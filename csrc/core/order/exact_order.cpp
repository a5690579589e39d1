#include "core/order/exact_order.h"

#include "core/order/permutation.h"

namespace tfrfast {
namespace {

class ExactEpoch final : public EpochOrder {
 public:
  ExactEpoch(std::int64_t records, const SipKey& key) noexcept : permutation_(records, key) {}

  void evaluate(const std::int64_t* positions, std::size_t count,
                std::int64_t* out) const noexcept override {
    permutation_.evaluate(positions, count, out);
  }

 private:
  Permutation permutation_;
};

}  // namespace

std::shared_ptr<const Order> ExactOrder::decode(Decoder& decoder) {
  return std::make_shared<const ExactOrder>(decoder.integer());
}

std::unique_ptr<const EpochOrder> ExactOrder::of_epoch(std::uint64_t seed,
                                                       std::uint64_t epoch) const {
  return std::make_unique<const ExactEpoch>(records(),
                                            derive_key(KeyPurpose::permutation, seed, epoch));
}

}  // namespace tfrfast
