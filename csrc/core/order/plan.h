// Deals records to batches: a pure function of (seed, epoch, step), the same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/order/order.h"

namespace tfrfast {

// The treatment of the positions left over after all full batches.
enum class Remainder : std::uint8_t {
  keep,  // split evenly; a rank without a row has one step fewer
  drop,  // left out of this epoch: fewer than world * batch_size positions
  pad,   // split evenly and filled up: every rank has the same steps, all of batch_size rows
};
const char* name_of(Remainder remainder) noexcept;
Remainder remainder_named(std::string_view name);  // throws Error(invalid)

struct PlanOptions {
  std::shared_ptr<const Order> order;
  std::uint64_t seed = 0;
  std::int64_t batch_size = 1;  // rows of one rank's batch
  std::int64_t rank = 0;
  std::int64_t world = 1;
  Remainder remainder = Remainder::keep;
  std::int64_t start = 0;  // the epoch's positions consumed earlier, by any world
};

inline constexpr std::int64_t kMaxBatchSize = (std::int64_t{1} << 31) - 1;
inline constexpr std::int64_t kMaxWorld = (std::int64_t{1} << 31) - 1;

// The batch of a step. Reused for the next batch, so that its memory is, too.
struct PlannedBatch {
  std::vector<std::int64_t> records;  // real rows come first, then padding
  std::size_t real_rows = 0;
  std::unique_ptr<bool[]> valid;         // which rows are real; null: all
  std::vector<PackedRecord> rows;        // if positions are batches
  std::span<const std::int64_t> tokens;  // of a pack, if positions are packs
  std::size_t packs = 0;                 // with padding

  // The records of the real packs.
  std::span<const PackedRecord> packed() const noexcept {
    return tokens.empty() ? std::span<const PackedRecord>() : std::span(rows).first(real_rows);
  }
  // The records that are read. Packs of padding stay empty.
  std::span<const std::int64_t> wanted() const noexcept {
    return tokens.empty() ? std::span(records) : std::span(records).first(real_rows);
  }
};

// The order gives the record at each position of an epoch. A step takes the next world * batch_size
// positions, and all ranks together take each position exactly once. So one number, the positions
// consumed, is enough to continue on another world.
//
// The order's streams determine how positions are dealt to ranks. If the number of streams is a
// multiple of the world, rank r takes every world-th position from the r-th on, and so whole
// streams. Otherwise some ranks share a stream. With a single stream, each rank takes a contiguous
// slice. A unit of the order goes to one rank. If positions are batches but not packs, each rank
// takes one batch in each step, and batch_size is 1.
//
// Immutable. Any number of threads. Takes hardly any memory besides the order.
class Plan {
 public:
  static constexpr EncodedKind kEncoding{"plan", "tfPL"};

  explicit Plan(PlanOptions options);  // throws Error(invalid)

  std::string encode() const;
  static Plan decode(std::string_view encoded);  // throws Error(invalid)

  const PlanOptions& options() const noexcept { return options_; }
  const Order& order() const noexcept { return *options_.order; }
  std::int64_t positions() const noexcept { return order().positions(); }  // of a whole epoch
  std::int64_t steps() const noexcept { return steps_; }  // from `start`, for this rank

  // The rows of a batch, with padding. 0 if the step does not exist. If the order's positions are
  // batches, an upper bound; if they are packs, an estimate.
  std::size_t row_count(std::int64_t step) const noexcept;

  // Make the order of an epoch once for many steps. The result does not own the plan's order.
  std::unique_ptr<const EpochOrder> of_epoch(std::uint64_t epoch) const {
    return order().of_epoch(options_.seed, epoch);
  }

  // Replaces `batch` with the batch of a step; without rows if the step does not exist. A row of
  // padding repeats a record from the beginning of the epoch.
  void batch(const EpochOrder& epoch, std::int64_t step, PlannedBatch& batch) const;

  // The positions of a batch, in the epoch: of its rows, or of the batches that it consists of.
  std::vector<std::int64_t> positions_of(std::int64_t step) const;
  // Unless positions are batches, there are row_count(step).
  void write_positions(std::int64_t step, std::int64_t* out) const noexcept {
    write_positions(slice(step), out);
  }

  // The positions of the epoch consumed once every rank has taken batches 0 to `step`: the `start`
  // of a plan that continues there. -1 returns `start`.
  std::int64_t position_after(std::int64_t step) const noexcept;

  // A plan may continue any plan with the same text. World, rank, batch size and remainder may
  // differ.
  std::string order_description() const { return order().describe(options_.seed); }

 private:
  // The positions of one rank in one step.
  struct Slice {
    std::int64_t step_position = 0;  // begin of the step's positions
    std::int64_t step_rows = 0;      // of all ranks
    std::int64_t real_rows = 0;
    std::int64_t padding_rows = 0;
    std::int64_t first_padding = 0;  // padding rows of all lower ranks
  };
  Slice slice(std::int64_t step) const noexcept;
  void write_positions(const Slice& slice, std::int64_t* out) const noexcept;
  void write_real_positions(const Slice& slice, std::int64_t* out) const noexcept;

  PlanOptions options_;
  std::int64_t global_batch_ = 0;
  std::int64_t full_steps_ = 0;
  std::int64_t left_over_ = 0;  // positions after the full steps
  std::int64_t steps_ = 0;
};

}  // namespace tfrfast
