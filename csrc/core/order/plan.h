// Which records make up a batch: a pure function of (seed, epoch, step), the same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/order/block_shuffle.h"
#include "core/order/permutation.h"

namespace tfrfast {

enum class Shuffle : std::uint8_t {
  none,    // the given order
  exact,   // one permutation of everything: any record in any place
  blocks,  // see BlockShuffle
};

// What becomes of the positions left over when full batches for all ranks have been dealt.
enum class Remainder : std::uint8_t {
  keep,  // split evenly; a rank that gets no row has one step fewer
  drop,  // left out of this epoch: fewer than world * batch_size of them
  pad,   // split evenly and filled up: every rank has the same steps, all of batch_size rows
};

struct PlanOptions {
  std::int64_t num_records = 0;
  std::int64_t batch_size = 1;  // rows of one rank's batch
  Shuffle shuffle = Shuffle::exact;
  BlockShape blocks;  // of Shuffle::blocks
  std::uint64_t seed = 0;
  std::int64_t rank = 0;
  std::int64_t world = 1;
  Remainder remainder = Remainder::keep;
  // Only these record numbers, each as often as it stands there; null for all of them.
  std::shared_ptr<const std::vector<std::int64_t>> indices;
  std::int64_t start = 0;  // positions of the epoch already consumed, by whatever world
};

inline constexpr std::int64_t kMaxBatchSize = (std::int64_t{1} << 31) - 1;
inline constexpr std::int64_t kMaxWorld = (std::int64_t{1} << 31) - 1;

// An epoch is a sequence of positions; the order says which record stands at each. A step takes
// the next world * batch_size positions, and all ranks together take each of them exactly once. So
// one number, the positions consumed, is all that a run on another world needs to carry on.
//
// A rank takes a contiguous slice of its step's positions, except under Shuffle::blocks: there the
// positions are dealt by stream. If the world divides the streams, rank r takes every world-th
// position from the r-th on, and so whole streams: no two ranks read from one block, except at the
// seams of the tail. Otherwise ranks that have a stream in common share its blocks.
//
// Immutable; every member may be called from any number of threads. Holds no memory that grows
// with num_records except `indices`.
class Plan {
 public:
  explicit Plan(PlanOptions options);  // throws Error(invalid)

  const PlanOptions& options() const noexcept { return options_; }
  std::int64_t positions() const noexcept { return positions_; }  // of a whole epoch
  std::int64_t steps() const noexcept { return steps_; }          // from `start`, for this rank

  // Rows of the batch, padding included. 0 for a step that does not exist.
  std::size_t row_count(std::int64_t step) const noexcept;

  // The order of one epoch, made once for many steps. Immutable, any number of threads; refers to
  // the plan.
  class Epoch {
   public:
    Epoch(const Plan& plan, std::uint64_t epoch) noexcept;

   private:
    friend class Plan;
    std::optional<Permutation> exact_;
    std::optional<BlockShuffle::Epoch> blocks_;
  };

  // Writes row_count(step) record numbers, and for each whether it is real: real rows come first.
  // A padding row repeats a record from the beginning of the epoch. `out_valid` may be null.
  std::size_t rows(const Epoch& epoch, std::int64_t step, std::int64_t* out_indices,
                   bool* out_valid) const noexcept;
  // The same for a single step: makes the Epoch, which takes up to a microsecond.
  std::size_t rows(std::uint64_t epoch, std::int64_t step, std::int64_t* out_indices,
                   bool* out_valid) const noexcept {
    return rows(Epoch(*this, epoch), step, out_indices, out_valid);
  }

  // Positions of the epoch consumed once every rank has taken batches 0 to `step`: what the `start`
  // of another plan takes. -1 gives `start`.
  std::int64_t position_after(std::int64_t step) const noexcept;

  // Everything that fixes which record stands at which position, and nothing else: two plans with
  // the same text may continue each other, whatever their world, rank, batch size and remainder.
  std::string order_description() const;

 private:
  // What one rank takes in one step.
  struct Slice {
    std::int64_t step_position = 0;  // where the step's positions begin
    std::int64_t step_rows = 0;      // of all ranks
    std::int64_t rows_below = 0;     // of the lower ranks
    std::int64_t real_rows = 0;
    std::int64_t padding_rows = 0;
    std::int64_t first_padding = 0;  // padding rows of the lower ranks
  };
  Slice slice(std::int64_t step) const noexcept;
  void write_positions(const Slice& slice, std::int64_t* out) const noexcept;
  void write_streamed_positions(const Slice& slice, std::int64_t* out) const noexcept;

  PlanOptions options_;
  std::optional<BlockShuffle> block_shuffle_;
  std::int64_t positions_ = 0;
  std::int64_t global_batch_ = 0;
  std::int64_t full_steps_ = 0;
  std::int64_t left_over_ = 0;  // positions behind the full steps
  std::int64_t steps_ = 0;
};

}  // namespace tfrfast
