#include "core/order/shuffle.h"

#include "core/order/permutation.h"

namespace tfrfast {
namespace {

class ShuffleEpoch final : public EpochOrder {
 public:
  ShuffleEpoch(std::int64_t records, const SipKey& key) noexcept : permutation_(records, key) {}

  void evaluate(const std::int64_t* positions, std::size_t count,
                std::int64_t* out) const noexcept override {
    permutation_.evaluate(positions, count, out);
  }

 private:
  Permutation permutation_;
};

}  // namespace

std::shared_ptr<const Order> Shuffle::decode(Decoder& decoder) {
  return std::make_shared<const Shuffle>(decoder.integer());
}

std::unique_ptr<const EpochOrder> Shuffle::of_epoch(std::uint64_t seed, std::uint64_t epoch) const {
  return std::make_unique<const ShuffleEpoch>(records(),
                                              derive_key(KeyPurpose::permutation, seed, epoch));
}

}  // namespace tfrfast
