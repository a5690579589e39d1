#include <algorithm>
#include <vector>

#include "core/order/block_shuffle.h"
#include "core/order/permutation.h"
#include "tensorflow/source.h"

namespace tfrfast::tensorflow {
namespace {

// The rows of a step, as runs of one epoch's positions.
struct Run {
  std::int64_t epoch = 0;
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

std::vector<Run> runs_of(const Sequence& sequence, std::int64_t step) {
  const std::int64_t size = sequence.positions.count;
  const std::int64_t rows = sequence.batch_rows;
  if (size <= 0 || rows <= 0 || step < 0) return {};
  if (sequence.batch_ends_with_epoch) {
    const std::int64_t steps = sequence.drop_remainder ? size / rows : (size - 1) / rows + 1;
    if (steps == 0) return {};
    const std::int64_t begin = step % steps * rows;
    return {{step / steps, begin, std::min(rows, size - begin)}};
  }
  // The position among all epochs, in two parts lest the product overflow.
  std::vector<Run> runs;
  Run run{step / size * rows, 0, 0};
  const auto into = static_cast<__int128>(step % size) * rows;
  run.epoch += static_cast<std::int64_t>(into / size);
  run.begin = static_cast<std::int64_t>(into % size);
  for (std::int64_t left = rows; left > 0;) {
    if (sequence.epochs >= 0 && run.epoch >= sequence.epochs) break;
    run.count = std::min(left, size - run.begin);
    runs.push_back(run);
    left -= run.count;
    ++run.epoch;
    run.begin = 0;
  }
  return runs;
}

void order_positions(const Sequence& sequence, std::uint64_t seed, std::int64_t epoch,
                     std::int64_t* positions, std::size_t count) {
  const auto epoch_key = static_cast<std::uint64_t>(sequence.reshuffles ? epoch : 0);
  if (sequence.order == Order::exact) {
    Permutation(sequence.records.count, seed, epoch_key).evaluate(positions, count, positions);
  } else if (sequence.order == Order::blocks) {
    const BlockShape shape{sequence.block_records, sequence.window_blocks, sequence.streams};
    const BlockShuffle shuffle(sequence.records.count, shape);
    BlockShuffle::Epoch(shuffle, seed, epoch_key).evaluate(positions, count, positions);
  }
}

}  // namespace

std::vector<std::int64_t> Source::records_of_batch(const Sequence& sequence, std::uint64_t seed,
                                                   std::int64_t step) {
  std::vector<std::int64_t> records;
  for (const Run& run : runs_of(sequence, step)) {
    const std::size_t first = records.size();
    const auto count = static_cast<std::size_t>(run.count);
    records.resize(first + count);
    std::int64_t* out = records.data() + first;
    for (std::int64_t i = 0; i < run.count; ++i) out[i] = sequence.positions.at(run.begin + i);
    order_positions(sequence, seed, run.epoch, out, count);
    for (std::size_t i = 0; i < count; ++i) out[i] = sequence.records.at(out[i]);
  }
  return records;
}

Records Source::read(std::span<const std::int64_t> records) const {
  std::vector<Row> rows(records.size());
  reader_->locate(records, rows.data());
  reader_->announce(rows);
  return Records::read(rows, spec_.skip_damage, place());
}

void fail_full_batch(const Sequence& sequence, std::string_view error) {
  if (sequence.drop_remainder && !error.empty()) throw failure_of(error);
}

}  // namespace tfrfast::tensorflow
