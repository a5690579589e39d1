// Defines which record stands at which position of an epoch.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/encoding.h"

namespace tfrfast {

// Part of every key and every checkpoint. Raised when the result of any order changes.
inline constexpr std::uint32_t kOrderVersion = 1;

// The tokens that a record, or a piece of a long record, has in each budget of a pack.
inline constexpr std::size_t kMaxBudgets = 4;
using Lengths = std::array<std::uint32_t, kMaxBudgets>;  // unused budgets are 0

// A record of a position that is a batch. In a pack: a record, or a piece of a long record.
struct PackedRecord {
  std::int64_t record = 0;
  std::int64_t piece = 0;    // its number among the record's pieces
  std::uint32_t row = 0;     // the position's number in the batch of a step
  std::int32_t segment = 0;  // its number in the row, from 1 on
  Lengths columns{};         // where its tokens begin, in each budget
  Lengths lengths{};
  std::uint8_t goes_on = 0;  // a bit for each budget: more of the record's tokens were counted
};

// The order of one epoch. Immutable. Any number of threads.
class EpochOrder {
 public:
  EpochOrder() = default;
  virtual ~EpochOrder() = default;
  EpochOrder(const EpochOrder&) = delete;
  EpochOrder& operator=(const EpochOrder&) = delete;

  // Writes the record at each position. Every position must exist. `positions` and `out` may be the
  // same array.
  virtual void evaluate(const std::int64_t* positions, std::size_t count,
                        std::int64_t* out) const = 0;

  // If positions are batches: appends the records of each. The first position is row `first_row`.
  // Unless positions are packs, a record has no other members than its number and its row.
  virtual void add_rows(std::span<const std::int64_t> /*positions*/, std::uint32_t /*first_row*/,
                        std::vector<PackedRecord>&) const {}
};

// A pure function of seed, epoch and position. Immutable. Any number of threads.
class Order {
 public:
  virtual ~Order() = default;
  Order(const Order&) = delete;
  Order& operator=(const Order&) = delete;

  // An epoch has the positions [0, positions()). The records are from [0, records()).
  std::int64_t positions() const noexcept { return positions_; }
  std::int64_t records() const noexcept { return records_; }

  // Position p belongs to stream p % streams(). Each stream has its own blocks of records, so ranks
  // that take whole streams share no blocks.
  std::int64_t streams() const noexcept { return streams_; }

  // The number of neighbouring positions that stay together: in one batch of one rank.
  virtual std::int64_t unit() const noexcept { return 1; }

  // If positions are batches: the rows of the largest batch; of packs, of a usual one. Otherwise 0.
  virtual std::int64_t max_rows() const noexcept { return 0; }

  // If positions are packs, which are batches as well: the tokens of a row, in each budget.
  virtual std::span<const std::int64_t> tokens() const noexcept { return {}; }

  // Making the order of an epoch takes about a microsecond, so make one for many positions. The
  // result does not own the Order.
  virtual std::unique_ptr<const EpochOrder> of_epoch(std::uint64_t seed,
                                                     std::uint64_t epoch) const = 0;

  // The same kind of order for another number of records. Throws Error(invalid) if this order
  // cannot have another number.
  virtual std::shared_ptr<const Order> over(std::int64_t records) const;

  // The same kind of order for other files, of whose records `records` are wanted. Null if nothing
  // changes. The differences of `firsts`, which begins with 0, are the files' numbers of records.
  virtual std::shared_ptr<const Order> over_files(const std::vector<std::int64_t>& firsts,
                                                  std::int64_t records) const;

  // One line with everything that determines the record at each position, and nothing else. Part of
  // every checkpoint. The shuffle comes first, then the records.
  std::string describe(std::uint64_t seed) const;
  virtual std::string describe_shuffle(std::uint64_t seed) const = 0;
  virtual std::string describe_records() const;

  // decode_order() finds the order by this name, and the order's decode() reads encode()'s output.
  const char* name() const noexcept { return name_; }
  virtual void encode(Encoder& encoder) const = 0;

 protected:
  // Throws Error(invalid) unless there are from 0 to kMaxPermutationSize records.
  Order(const char* name, std::int64_t positions, std::int64_t records, std::int64_t streams = 1);

 private:
  const char* name_;
  std::int64_t positions_;
  std::int64_t records_;
  std::int64_t streams_;
};

void encode_order(Encoder& encoder, const Order& order);
// Throws Error(invalid) for an order that this version does not know.
std::shared_ptr<const Order> decode_order(Decoder& decoder);
// An order as a member of a description.
inline void code_order(Encoder& encoder, const std::shared_ptr<const Order>& order) {
  encode_order(encoder, *order);
}
inline void code_order(Decoder& decoder, std::shared_ptr<const Order>& order) {
  order = decode_order(decoder);
}

}  // namespace tfrfast
