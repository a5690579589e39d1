#include "core/order/counted_order.h"

#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "core/base/fork.h"
#include "core/order/permutation.h"
#include "core/order/ranges.h"
#include "core/order/siphash.h"

namespace tfrfast {
namespace {

constinit std::mutex living_lock;
std::mutex& living_mutex() {
  return living_lock;
}
[[maybe_unused]] const int kLivingGuarded = make_fork_wait_for<living_mutex>();

// By the name of an order and a hash of its encoding.
using LivingOrders = std::map<std::pair<std::string, std::uint64_t>, std::weak_ptr<const Order>>;
LivingOrders& living_orders() {
  static LivingOrders& orders = *new LivingOrders();
  return orders;
}

std::pair<std::string, std::uint64_t> key_of(std::string_view name, std::string_view encoded) {
  SipHash hash(SipKey{});
  std::uint64_t word = 0;
  for (; encoded.size() >= sizeof word; encoded.remove_prefix(sizeof word)) {
    std::memcpy(&word, encoded.data(), sizeof word);
    hash.add(word);
  }
  word = 0;
  std::memcpy(&word, encoded.data(), encoded.size());
  return {std::string(name), hash.finish(word, encoded.size())};
}

constexpr auto code_records = [](auto& coder, auto& counted) {
  coder.integer(counted.first);
  coder.integer(counted.records);
  coder.flag(counted.has_indices);
  coder.integers(counted.indices);
  coder.list(counted.references, [&](auto& reference) {
    coder.string(reference.path);
    coder.number(reference.hash);
  });
};

}  // namespace

void CountedRecords::check() const {
  check_range("the first record", first, 0, kMaxPermutationSize);
  check_range("the number of records", records, 0, kMaxPermutationSize - first);
  for (const auto& table : tables) {
    const auto size = static_cast<std::int64_t>(table->size());
    if (size >= first + records) continue;
    refuse("the number of lengths", size, std::to_string(first + records) + " or more");
  }
  for (const std::int64_t index : indices) {
    if (index >= 0 && index < records) continue;
    throw Error(ErrorKind::invalid, "indices hold " + std::to_string(index) + ", but there are " +
                                        std::to_string(records) + " records.");
  }
}

void CountedRecords::encode(Encoder& encoder) const {
  code_records(encoder, *this);
}

CountedRecords CountedRecords::decode(Decoder& decoder) {
  CountedRecords counted;
  code_records(decoder, counted);
  return counted;
}

void CountedRecords::open() {
  for (const LengthReference& reference : references) {
    tables.push_back(LengthTable::open(reference));
  }
}

CountedOrder::CountedOrder(const char* name, std::int64_t positions, CountedRecords counted)
    : Order(name, positions, counted.records), counted_(std::move(counted)) {
  counted_.references.clear();
  for (const auto& table : counted_.tables) counted_.references.push_back(table->reference());
  counted_.tables.clear();
}

void CountedOrder::encode(Encoder& encoder) const {
  const std::size_t begin = encoder.bytes().size();
  counted_.encode(encoder);
  encode_options(encoder);
  const std::lock_guard lock(living_mutex());
  std::erase_if(living_orders(), [](const auto& each) { return each.second.expired(); });
  living_orders()[key_of(name(), encoder.bytes().substr(begin))] = weak_from_this();
}

std::shared_ptr<const Order> CountedOrder::living_order(std::string_view name,
                                                        std::string_view encoded) {
  const std::lock_guard lock(living_mutex());
  const auto found = living_orders().find(key_of(name, encoded));
  return found == living_orders().end() ? nullptr : found->second.lock();
}

}  // namespace tfrfast
