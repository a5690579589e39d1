#include "core/order/plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/choice.h"
#include "core/order/ranges.h"

namespace tfrfast {
namespace {

// In the order of the enum.
constexpr Choice<Remainder> kRemainders[] = {
    {"keep", Remainder::keep}, {"drop", Remainder::drop}, {"pad", Remainder::pad}};

// `rows` rows are split as evenly as possible. Returns how many rows the ranks below `rank` get.
std::int64_t rows_below(std::int64_t rows, std::int64_t rank, std::int64_t world) noexcept {
  return rows / world * rank + std::min(rank, rows % world);
}

std::int64_t* write_progression(std::int64_t first, std::int64_t stride, std::int64_t count,
                                std::int64_t* out) noexcept {
  for (std::int64_t i = 0; i < count; ++i) out[i] = first + i * stride;
  return out + count;
}

constexpr auto code_plan = [](auto& coder, auto& options) {
  code_order(coder, options.order);
  coder.number(options.seed);
  coder.integer(options.batch_size);
  coder.integer(options.rank);
  coder.integer(options.world);
  coder.named(options.remainder, [](Remainder each) { return name_of(each); }, &remainder_named);
  coder.integer(options.start);
};

}  // namespace

const char* name_of(Remainder remainder) noexcept {
  return kRemainders[static_cast<std::size_t>(remainder)].name;
}

Remainder remainder_named(std::string_view name) {
  return choose("remainder", name, kRemainders);
}

Plan::Plan(PlanOptions options) : options_(std::move(options)) {
  check_range("batch_size", options_.batch_size, 1, kMaxBatchSize);
  check_range("world", options_.world, 1, kMaxWorld);
  if (options_.rank < 0 || options_.rank >= options_.world) {
    refuse("rank", options_.rank,
           "0 or more and less than world, which is " + std::to_string(options_.world));
  }
  if (options_.start < 0 || options_.start > positions()) {
    refuse("start", options_.start,
           "0 or more and at most the positions of an epoch, which are " +
               std::to_string(positions()));
  }
  if (const std::int64_t unit = order().unit(); unit != 1) {
    if (options_.batch_size != unit) {
      refuse("batch_size", options_.batch_size,
             std::to_string(unit) + ", the rows that this order keeps together");
    }
    if (options_.start % unit != 0) {
      refuse("start", options_.start, "a multiple of " + std::to_string(unit));
    }
  }
  if (order().max_rows() > 0 && order().tokens().empty() && options_.batch_size != 1) {
    refuse("batch_size", options_.batch_size, "1, since the order itself makes batches");
  }
  global_batch_ = options_.world * options_.batch_size;
  const std::int64_t remaining = positions() - options_.start;
  full_steps_ = remaining / global_batch_;
  left_over_ = remaining % global_batch_;
  steps_ = full_steps_;
  if (left_over_ == 0 || options_.remainder == Remainder::drop) return;
  // Lower ranks get their rows first, so rank r gets a row only if more than r units are left.
  const std::int64_t left_units = left_over_ / order().unit();
  if (options_.remainder == Remainder::pad || left_units > options_.rank) ++steps_;
}

std::string Plan::encode() const {
  return encode_as(kEncoding, options_, code_plan);
}

Plan Plan::decode(std::string_view encoded) {
  return Plan(decode_as<PlanOptions>(kEncoding, encoded, code_plan));
}

Plan::Slice Plan::slice(std::int64_t step) const noexcept {
  if (step < 0 || step >= steps_) return {};
  Slice slice;
  slice.step_position = options_.start + step * global_batch_;
  slice.step_rows = step < full_steps_ ? global_batch_ : left_over_;
  const std::int64_t unit = order().unit();
  const std::int64_t units = slice.step_rows / unit;
  const std::int64_t below = rows_below(units, options_.rank, options_.world) * unit;
  slice.real_rows = rows_below(units, options_.rank + 1, options_.world) * unit - below;
  if (options_.remainder == Remainder::pad) {
    slice.padding_rows = options_.batch_size - slice.real_rows;
    slice.first_padding = options_.rank * options_.batch_size - below;
  }
  return slice;
}

// The padding of all ranks together runs through the epoch from its beginning.
void Plan::write_positions(const Slice& slice, std::int64_t* out) const noexcept {
  if (slice.real_rows > 0) write_real_positions(slice, out);
  if (slice.padding_rows == 0) return;
  std::int64_t padding = slice.first_padding % positions();
  for (std::int64_t i = 0; i < slice.padding_rows; ++i) {
    out[slice.real_rows + i] = padding;
    if (++padding == positions()) padding = 0;
  }
}

// The ranks and the streams fall into gcd(world, streams) groups. Row i of the step belongs to
// group i % groups, and every group has the same number of ranks and streams. Within a group the
// rows are split evenly, stream by stream; a single rank takes all rows. Each rank gets as many
// rows as a contiguous slice would have.
void Plan::write_real_positions(const Slice& slice, std::int64_t* out) const noexcept {
  const std::int64_t streams = order().streams();
  const std::int64_t groups = std::gcd(options_.world, streams);
  const std::int64_t group_ranks = options_.world / groups;
  const std::int64_t group_streams = streams / groups;
  const std::int64_t first = slice.step_position + options_.rank % groups;
  if (group_ranks == 1) {
    write_progression(first, groups, slice.real_rows, out);
    return;
  }
  const std::int64_t group_rows = (slice.step_rows - options_.rank % groups + groups - 1) / groups;
  const std::int64_t first_stream = first % streams / groups;
  const std::int64_t unit = order().unit();  // 1 if there are several streams
  std::int64_t skip = rows_below(group_rows / unit, options_.rank / groups, group_ranks) * unit;
  std::int64_t left = slice.real_rows;
  for (std::int64_t stream = 0; left > 0; ++stream) {
    // In the group, the stream's rows are row, row + group_streams, ...
    const std::int64_t row = (stream - first_stream + group_streams) % group_streams;
    const std::int64_t rows = row < group_rows ? (group_rows - row - 1) / group_streams + 1 : 0;
    const std::int64_t taken = std::clamp<std::int64_t>(rows - skip, 0, left);
    out = write_progression(first + (row + skip * group_streams) * groups, group_streams * groups,
                            taken, out);
    left -= taken;
    skip = std::max<std::int64_t>(skip - rows, 0);
  }
}

std::size_t Plan::row_count(std::int64_t step) const noexcept {
  const Slice at = slice(step);
  const std::int64_t rows = std::max<std::int64_t>(order().max_rows(), 1);
  return static_cast<std::size_t>((at.real_rows + at.padding_rows) * rows);
}

std::vector<std::int64_t> Plan::positions_of(std::int64_t step) const {
  const Slice at = slice(step);
  std::vector<std::int64_t> positions(static_cast<std::size_t>(at.real_rows + at.padding_rows));
  write_positions(at, positions.data());
  return positions;
}

void Plan::batch(const EpochOrder& epoch, std::int64_t step, PlannedBatch& batch) const {
  const Slice at = slice(step);
  const auto real = static_cast<std::size_t>(at.real_rows);
  const auto count = static_cast<std::size_t>(at.real_rows + at.padding_rows);
  batch.tokens = order().tokens();
  batch.packs = batch.tokens.empty() ? 0 : count;
  batch.rows.clear();
  if (order().max_rows() == 0) {
    batch.real_rows = real;
    batch.records.resize(count);
    write_positions(at, batch.records.data());
    epoch.evaluate(batch.records.data(), count, batch.records.data());
  } else {
    const std::vector<std::int64_t> positions = positions_of(step);
    const auto all = std::span<const std::int64_t>(positions);
    epoch.add_rows(all.first(real), 0, batch.rows);
    batch.real_rows = batch.rows.size();
    epoch.add_rows(all.subspan(real), static_cast<std::uint32_t>(real), batch.rows);
    batch.records.resize(batch.rows.size());
    std::transform(batch.rows.begin(), batch.rows.end(), batch.records.begin(),
                   [](const PackedRecord& row) { return row.record; });
  }
  batch.valid = nullptr;
  if (batch.real_rows == batch.records.size()) return;
  batch.valid = std::make_unique<bool[]>(batch.records.size());
  std::fill_n(batch.valid.get(), batch.real_rows, true);
}

std::int64_t Plan::position_after(std::int64_t step) const noexcept {
  if (step < 0) return options_.start;
  if (step < full_steps_) return options_.start + (step + 1) * global_batch_;
  return options_.remainder == Remainder::drop ? positions() - left_over_ : positions();
}

}  // namespace tfrfast
