#include "core/order/sequence.h"

#include <algorithm>

#include "core/order/permutation.h"
#include "core/order/ranges.h"

namespace tfrfast {
namespace {

// Consecutive positions of one epoch in a batch.
struct PositionRun {
  __int128 epoch = 0;  // an endless sequence has more than 2^63 epochs
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

std::vector<PositionRun> runs_of(const Sequence& sequence, std::int64_t step) {
  const std::int64_t size = sequence.positions.count;
  const std::int64_t rows = sequence.batch_rows;
  if (step < 0 || step >= sequence.batch_count()) return {};
  if (sequence.batch_ends_with_epoch) {
    const std::int64_t steps = sequence.drop_remainder ? size / rows : (size - 1) / rows + 1;
    const std::int64_t begin = step % steps * rows;
    return {{step / steps, begin, std::min(rows, size - begin)}};
  }
  const __int128 position = static_cast<__int128>(step) * rows;  // counted through all epochs
  std::vector<PositionRun> runs;
  PositionRun run{position / size, static_cast<std::int64_t>(position % size), 0};
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

// A progression of numbers below `end`.
template <class Coder, class Numbers>
void code_progression(Coder& coder, Numbers& numbers, std::int64_t end) {
  coder.integer(numbers.first);
  coder.integer(numbers.stride);
  coder.integer(numbers.count);
  std::int64_t all_end;
  coder.require(numbers.first >= 0 && numbers.stride >= 1 && numbers.count >= 0 &&
                    !__builtin_mul_overflow(numbers.stride, numbers.count, &all_end) &&
                    !__builtin_add_overflow(numbers.first, all_end, &all_end) &&
                    (numbers.count == 0 || numbers.at(numbers.count - 1) < end),
                "it has numbers that do not exist");
}

constexpr auto code_sequence = [](auto& coder, auto& sequence) {
  code_progression(coder, sequence.records, kMaxPermutationSize);
  code_order(coder, sequence.order);
  coder.require(sequence.order->records() == sequence.records.count,
                "its order is for another number of records");
  code_progression(coder, sequence.positions, sequence.order->positions());
  coder.flag(sequence.reshuffles);
  coder.integer(sequence.epochs);
  coder.integer(sequence.batch_rows);
  coder.flag(sequence.batch_ends_with_epoch);
  coder.flag(sequence.drop_remainder);
};

}  // namespace

std::string Sequence::encode() const {
  return encode_as(kEncoding, *this, code_sequence);
}

Sequence Sequence::decode(std::string_view encoded) {
  Sequence sequence = decode_as<Sequence>(kEncoding, encoded, code_sequence);
  check_range("epochs", sequence.epochs, -1, kEndless);
  check_range("batch_rows", sequence.batch_rows, 0, kMaxPermutationSize);
  return sequence;
}

Sequence Sequence::over(const std::vector<std::int64_t>& firsts) const {
  Sequence other = *this;
  other.records = records.below(firsts.back());
  if (auto changed = order->over_files(firsts, other.records.count)) other.order = changed;
  other.positions = positions.below(other.order->positions());
  return other;
}

std::int64_t in_epochs(std::int64_t size, std::int64_t epochs) noexcept {
  if (size == 0 || epochs == 0) return 0;
  return epochs < 0 || size > kEndless / epochs ? kEndless : size * epochs;
}

std::int64_t Sequence::batch_count() const noexcept {
  if (batch_rows == 0) return 0;
  const auto batches_in = [this](__int128 rows) {
    const __int128 batches =
        drop_remainder ? rows / batch_rows : (rows + batch_rows - 1) / batch_rows;
    return static_cast<std::int64_t>(std::min<__int128>(batches, kEndless));
  };
  if (batch_ends_with_epoch) return in_epochs(batches_in(positions.count), epochs);
  if (epochs < 0) return in_epochs(positions.count, epochs);
  return batches_in(static_cast<__int128>(positions.count) * epochs);
}

std::vector<std::int64_t> Sequence::batch(std::uint64_t seed, std::int64_t step) const {
  std::vector<std::int64_t> numbers;
  for (const PositionRun& run : runs_of(*this, step)) {
    const std::size_t first = numbers.size();
    const auto count = static_cast<std::size_t>(run.count);
    numbers.resize(first + count);
    std::int64_t* out = numbers.data() + first;
    for (std::int64_t i = 0; i < run.count; ++i) out[i] = positions.at(run.begin + i);
    const auto epoch = static_cast<std::uint64_t>(reshuffles ? run.epoch : 0);
    order->of_epoch(seed, epoch)->evaluate(out, count, out);
    for (std::size_t i = 0; i < count; ++i) out[i] = records.at(out[i]);
  }
  return numbers;
}

}  // namespace tfrfast
