#include "core/order/plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/error.h"
#include "core/order/permutation.h"

namespace tfrfast {
namespace {

[[noreturn]] void refuse(const std::string& what, std::int64_t found, const std::string& allowed) {
  throw Error(ErrorKind::invalid,
              what + " is " + std::to_string(found) + ", but must be " + allowed + ".");
}

void check_range(const char* what, std::int64_t found, std::int64_t least, std::int64_t most) {
  if (found < least || found > most) {
    refuse(what, found, "from " + std::to_string(least) + " to " + std::to_string(most));
  }
}

void check_indices(const std::vector<std::int64_t>& indices, std::int64_t num_records) {
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] >= 0 && indices[i] < num_records) continue;
    refuse("indices[" + std::to_string(i) + "]", indices[i],
           "a record number: 0 or more and less than num_records, which is " +
               std::to_string(num_records));
  }
}

// How many of `rows` the ranks below `rank` get when they are split as evenly as can be.
std::int64_t rows_below(std::int64_t rows, std::int64_t rank, std::int64_t world) noexcept {
  return rows / world * rank + std::min(rank, rows % world);
}

const char* name_of(Shuffle shuffle) noexcept {
  switch (shuffle) {
    case Shuffle::none:
      return "none";
    case Shuffle::exact:
      return "exact";
    case Shuffle::blocks:
      return "blocks";
  }
  return "";
}

}  // namespace

Plan::Plan(PlanOptions options) : options_(std::move(options)) {
  check_range("num_records", options_.num_records, 0, kMaxPermutationSize);
  check_range("batch_size", options_.batch_size, 1, kMaxBatchSize);
  check_range("world", options_.world, 1, kMaxWorld);
  if (options_.rank < 0 || options_.rank >= options_.world) {
    refuse("rank", options_.rank,
           "0 or more and less than world, which is " + std::to_string(options_.world));
  }
  positions_ = options_.num_records;
  if (options_.indices) {
    check_indices(*options_.indices, options_.num_records);
    positions_ = static_cast<std::int64_t>(options_.indices->size());
  }
  if (options_.start < 0 || options_.start > positions_) {
    refuse(
        "start", options_.start,
        "0 or more and at most the positions of an epoch, which are " + std::to_string(positions_));
  }
  if (options_.shuffle == Shuffle::blocks) {
    check_range("block_records", options_.blocks.block_records, 1, kMaxBlockRecords);
    check_range("window_blocks", options_.blocks.window_blocks, 1, kMaxWindowBlocks);
    check_range("streams", options_.blocks.streams, 1, kMaxStreams);
    block_shuffle_.emplace(positions_, options_.blocks);
  }
  global_batch_ = options_.world * options_.batch_size;
  const std::int64_t remaining = positions_ - options_.start;
  full_steps_ = remaining / global_batch_;
  left_over_ = remaining % global_batch_;
  steps_ = full_steps_;
  if (left_over_ == 0 || options_.remainder == Remainder::drop) return;
  // Rows are dealt to the low ranks first, so rank r has one if there are more than r.
  if (options_.remainder == Remainder::pad || left_over_ > options_.rank) ++steps_;
}

Plan::Slice Plan::slice(std::int64_t step) const noexcept {
  if (step < 0 || step >= steps_) return {};
  Slice slice;
  slice.step_position = options_.start + step * global_batch_;
  slice.step_rows = step < full_steps_ ? global_batch_ : left_over_;
  slice.rows_below = rows_below(slice.step_rows, options_.rank, options_.world);
  slice.real_rows =
      rows_below(slice.step_rows, options_.rank + 1, options_.world) - slice.rows_below;
  if (options_.remainder == Remainder::pad) {
    slice.padding_rows = options_.batch_size - slice.real_rows;
    slice.first_padding = options_.rank * options_.batch_size - slice.rows_below;
  }
  return slice;
}

void Plan::write_positions(const Slice& slice, std::int64_t* out) const noexcept {
  if (block_shuffle_) {
    write_streamed_positions(slice, out);
  } else {
    std::iota(out, out + slice.real_rows, slice.step_position + slice.rows_below);
  }
  // The padding of all ranks together runs through the epoch from its beginning.
  std::int64_t padding = slice.first_padding % positions_;
  for (std::int64_t i = 0; i < slice.padding_rows; ++i) {
    out[slice.real_rows + i] = padding;
    if (++padding == positions_) padding = 0;
  }
}

// The world's ranks and the streams fall into as many groups as they have common divisors: row i
// of the step belongs to group i % groups, and each group has equally many ranks and streams.
// Within a group the rows, stream by stream, are split evenly; with one rank to a group there is
// nothing to split. The counts are those of contiguous slices, whatever the groups.
void Plan::write_streamed_positions(const Slice& slice, std::int64_t* out) const noexcept {
  const std::int64_t streams = options_.blocks.streams;
  const std::int64_t groups = std::gcd(options_.world, streams);
  const std::int64_t group_ranks = options_.world / groups;
  const std::int64_t group_streams = streams / groups;
  const std::int64_t first = slice.step_position + options_.rank % groups;
  if (group_ranks == 1) {
    for (std::int64_t i = 0; i < slice.real_rows; ++i) out[i] = first + i * groups;
    return;
  }
  const std::int64_t group_rows = (slice.step_rows - options_.rank % groups + groups - 1) / groups;
  const std::int64_t first_stream = first % streams / groups;
  std::int64_t skip = rows_below(group_rows, options_.rank / groups, group_ranks);
  std::int64_t written = 0;
  for (std::int64_t stream = 0; written < slice.real_rows; ++stream) {
    // The stream's rows of the group are row, row + group_streams, ...
    const std::int64_t row = (stream - first_stream + group_streams) % group_streams;
    const std::int64_t rows = row < group_rows ? (group_rows - row - 1) / group_streams + 1 : 0;
    const std::int64_t end = std::min(rows, skip + slice.real_rows - written);
    for (std::int64_t i = skip; i < end; ++i) {
      out[written++] = first + (row + i * group_streams) * groups;
    }
    skip = std::max<std::int64_t>(skip - rows, 0);
  }
}

std::size_t Plan::row_count(std::int64_t step) const noexcept {
  const Slice at = slice(step);
  return static_cast<std::size_t>(at.real_rows + at.padding_rows);
}

Plan::Epoch::Epoch(const Plan& plan, std::uint64_t epoch) noexcept {
  const std::uint64_t seed = plan.options_.seed;
  if (plan.options_.shuffle == Shuffle::exact) {
    exact_.emplace(plan.positions_, derive_key(KeyPurpose::permutation, seed, epoch));
  } else if (plan.block_shuffle_) {
    blocks_.emplace(*plan.block_shuffle_, seed, epoch);
  }
}

std::size_t Plan::rows(const Epoch& epoch, std::int64_t step, std::int64_t* out_indices,
                       bool* out_valid) const noexcept {
  const Slice at = slice(step);
  const auto real_rows = static_cast<std::size_t>(at.real_rows);
  const auto count = static_cast<std::size_t>(at.real_rows + at.padding_rows);
  if (count == 0) return 0;

  write_positions(at, out_indices);
  if (epoch.exact_) epoch.exact_->evaluate(out_indices, count, out_indices);
  if (epoch.blocks_) epoch.blocks_->evaluate(out_indices, count, out_indices);
  if (options_.indices) {
    const std::int64_t* chosen = options_.indices->data();
    for (std::size_t i = 0; i < count; ++i) out_indices[i] = chosen[out_indices[i]];
  }
  if (out_valid != nullptr) {
    std::fill(out_valid, out_valid + real_rows, true);
    std::fill(out_valid + real_rows, out_valid + count, false);
  }
  return count;
}

std::int64_t Plan::position_after(std::int64_t step) const noexcept {
  if (step < 0) return options_.start;
  if (step < full_steps_) return options_.start + (step + 1) * global_batch_;
  return options_.remainder == Remainder::drop ? positions_ - left_over_ : positions_;
}

std::string Plan::order_description() const {
  std::string text =
      "order version=" + std::to_string(kOrderVersion) + " shuffle=" + name_of(options_.shuffle);
  if (options_.shuffle == Shuffle::blocks) {
    text += " block_records=" + std::to_string(options_.blocks.block_records) +
            " window_blocks=" + std::to_string(options_.blocks.window_blocks) +
            " streams=" + std::to_string(options_.blocks.streams);
  }
  if (options_.shuffle != Shuffle::none) text += " seed=" + std::to_string(options_.seed);
  text += " records=" + std::to_string(options_.num_records);
  if (options_.indices) {
    SipHash hash(SipKey{});
    for (const std::int64_t index : *options_.indices) hash.add(static_cast<std::uint64_t>(index));
    text += " indices=" + std::to_string(positions_) + ":" + std::to_string(hash.finish());
  }
  return text;
}

}  // namespace tfrfast
