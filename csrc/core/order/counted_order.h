// Orders that the lengths of records decide.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/order/length_table.h"
#include "core/order/order.h"

namespace tfrfast {

// Records [first, first + records) of tables, or some of them. Record numbers count from `first`.
struct CountedRecords {
  std::vector<std::shared_ptr<const LengthTable>> tables;
  std::int64_t first = 0;
  std::int64_t records = 0;
  bool has_indices = false;
  std::vector<std::int64_t> indices;  // only these records

  void check() const;  // throws Error invalid
  std::size_t count() const noexcept {
    return has_indices ? indices.size() : static_cast<std::size_t>(records);
  }
  std::int64_t record(std::size_t i) const noexcept {
    return has_indices ? indices[i] : static_cast<std::int64_t>(i);
  }
  std::uint32_t length(std::int64_t record, std::size_t table = 0) const noexcept {
    return (*tables[table])[static_cast<std::size_t>(first + record)];
  }

  // The tables are encoded as references. open() opens them after decode().
  void encode(Encoder& encoder) const;
  static CountedRecords decode(Decoder& decoder);
  void open();
  std::vector<LengthReference> references;  // of closed tables
};

// Holds numbers for each record, and no lengths. An encoding names the tables of lengths. In the
// process that has encoded an order, the order is found again while it lives, and no table is
// opened.
class CountedOrder : public Order, public std::enable_shared_from_this<CountedOrder> {
 public:
  void encode(Encoder& encoder) const final;

 protected:
  CountedOrder(const char* name, std::int64_t positions, CountedRecords counted);
  const CountedRecords& counted() const noexcept { return counted_; }
  virtual void encode_options(Encoder& encoder) const = 0;

  // Reads what encode() wrote. make(counted, options) makes the order.
  template <class ReadOptions, class Make>
  static std::shared_ptr<const Order> decode_with(const char* name, Decoder& decoder,
                                                  const ReadOptions& read_options,
                                                  const Make& make) {
    const std::string_view all = decoder.rest();
    CountedRecords counted = CountedRecords::decode(decoder);
    const auto options = read_options(decoder);
    if (auto living = living_order(name, all.substr(0, all.size() - decoder.rest().size()))) {
      return living;
    }
    counted.open();
    return make(std::move(counted), options);
  }

 private:
  static std::shared_ptr<const Order> living_order(std::string_view name, std::string_view encoded);

  CountedRecords counted_;  // the tables are closed
};

}  // namespace tfrfast
