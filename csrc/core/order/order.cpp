#include "core/order/order.h"

#include <utility>

#include "core/order/block_shuffle.h"
#include "core/order/chosen_order.h"
#include "core/order/in_order.h"
#include "core/order/interleaved_order.h"
#include "core/order/length_batches.h"
#include "core/order/mixture.h"
#include "core/order/packed_order.h"
#include "core/order/ranges.h"
#include "core/order/shuffle.h"
#include "core/order/weighted.h"

namespace tfrfast {
namespace {

struct NamedOrder {
  const char* name;
  std::shared_ptr<const Order> (*decode)(Decoder&);
};

constexpr NamedOrder kOrders[] = {
    {InOrder::kName, &InOrder::decode},
    {Shuffle::kName, &Shuffle::decode},
    {BlockShuffle::kName, &BlockShuffle::decode},
    {ChosenOrder::kName, &ChosenOrder::decode},
    {LengthBatches::kName, &LengthBatches::decode},
    {Mixture::kName, &Mixture::decode},
    {PackedOrder::kName, &PackedOrder::decode},
    {Weighted::kName, &Weighted::decode},
    {InterleavedOrder::kName, &InterleavedOrder::decode},
};

}  // namespace

Order::Order(const char* name, std::int64_t positions, std::int64_t records, std::int64_t streams)
    : name_(name), positions_(positions), records_(records), streams_(streams) {
  check_range("num_records", records, 0, kMaxPermutationSize);
}

std::shared_ptr<const Order> Order::over(std::int64_t records) const {
  refuse("the number of records", records,
         "that of the order, which is " + std::to_string(records_));
}

std::shared_ptr<const Order> Order::over_files(const std::vector<std::int64_t>&,
                                               std::int64_t records) const {
  return records == records_ ? nullptr : over(records);
}

std::string Order::describe(std::uint64_t seed) const {
  return "order version=" + std::to_string(kOrderVersion) + " " + describe_shuffle(seed) + " " +
         describe_records();
}

std::string Order::describe_records() const {
  return "records=" + std::to_string(records_);
}

void encode_order(Encoder& encoder, const Order& order) {
  encoder.number(kOrderVersion);
  encoder.string(order.name());
  order.encode(encoder);
}

std::shared_ptr<const Order> decode_order(Decoder& decoder) {
  const Decoder::Nesting level(decoder);
  if (const std::uint64_t version = decoder.number(); version != kOrderVersion) {
    throw Error(ErrorKind::invalid,
                "This was made with version " + std::to_string(version) +
                    " of the order, and this tfrfast has version " + std::to_string(kOrderVersion) +
                    ": it would give other records. Use the tfrfast that made it.");
  }
  const std::string_view name = decoder.string();
  for (const NamedOrder& order : kOrders) {
    if (name == order.name) return order.decode(decoder);
  }
  decoder.refuse("no order has its name");
}

}  // namespace tfrfast
