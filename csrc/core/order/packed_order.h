// Rows of tokens, each filled with several records, in random order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/order/compact_numbers.h"
#include "core/order/counted_order.h"
#include "core/order/pack_shapes.h"

namespace tfrfast {

// What becomes of a record that is longer than a row.
enum class Overlong : std::uint8_t {
  refuse,  // an error
  cut,     // the row ends it
  split,   // pieces of a row and a rest; only with one budget
};
Overlong overlong_named(std::string_view name);  // throws Error(invalid)
const char* name_of(Overlong overlong) noexcept;

struct PackingOptions {
  std::vector<std::int64_t> tokens;  // the budgets of a row
  Overlong overlong = Overlong::refuse;
};

// Every position is a pack: a row of tokens. In each epoch, shapes for all packs are drawn from the
// lengths alone. Permutations of the pieces of each length, of the packs and of each pack's pieces
// then give every piece a place. docs/permutation.md specifies the order.
//
// Immutable for users. Any number of threads. Holds 4 bytes for each piece, a bit in each budget
// if records are cut or split, and the shapes of the last epochs.
class PackedOrder final : public CountedOrder {
 public:
  static constexpr const char* kName = "packed";

  // `counted` has a table for each budget. Throws Error(invalid).
  PackedOrder(CountedRecords counted, PackingOptions options);
  static std::shared_ptr<const Order> decode(Decoder& decoder);

  struct Fill {
    std::int64_t packs = 0;
    std::int64_t records = 0;          // that are packed
    std::int64_t pieces = 0;           // of those records
    std::int64_t left_out = 0;         // records without tokens
    std::int64_t cut = 0;              // records that were cut,
    std::int64_t split = 0;            // or split
    std::vector<std::int64_t> tokens;  // real tokens, for each budget
  };
  const Fill& fill() const noexcept { return fill_; }

  std::span<const std::int64_t> tokens() const noexcept override { return options_.tokens; }
  std::int64_t max_rows() const noexcept override { return max_rows_; }
  std::unique_ptr<const EpochOrder> of_epoch(std::uint64_t seed,
                                             std::uint64_t epoch) const override;
  std::string describe_shuffle(std::uint64_t seed) const override;
  std::string describe_records() const override;

 private:
  friend class PackedEpoch;
  struct Sorted;

  PackedOrder(CountedRecords counted, PackingOptions options, Sorted sorted);
  static Sorted sort(const CountedRecords& counted, const PackingOptions& options);
  void encode_options(Encoder& encoder) const override;
  PackingOptions options_;
  Lengths row_{};                     // the budgets
  std::vector<LengthClass> classes_;  // ascending
  CompactNumbers members_;            // the record of each piece, class by class
  std::vector<bool> go_on_;           // of each member, in each budget; or empty
  Fill fill_;
  std::int64_t max_rows_ = 1;

  // What is drawn for an epoch.
  struct DrawnEpoch {
    std::uint64_t seed = 0;
    std::uint64_t epoch = 0;
    PackShapes shapes;
    std::vector<std::uint64_t> tweaks;  // of each class's permutation
  };
  std::shared_ptr<const DrawnEpoch> drawn(std::uint64_t seed, std::uint64_t epoch) const;
  // Of the last epochs. The lock of all draws guards it.
  mutable std::vector<std::shared_ptr<const DrawnEpoch>> drawn_;
};

}  // namespace tfrfast
