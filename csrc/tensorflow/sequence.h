// Which records a dataset's elements are: what take, skip, shard, shuffle, repeat and batch on a
// source add up to. Travels as one vector of integers; tfrfast/_tensorflow/sequence.py writes it.
#pragma once

#include <cstdint>
#include <span>

namespace tfrfast::tensorflow {

// first, first + stride, ... : `count` of them.
struct Progression {
  std::int64_t first = 0;
  std::int64_t stride = 1;
  std::int64_t count = 0;

  std::int64_t at(std::int64_t position) const noexcept { return first + stride * position; }
  bool has(std::int64_t value) const noexcept {
    return value >= first && (value - first) % stride == 0 && (value - first) / stride < count;
  }
};

enum class Order : std::int64_t { given = 0, exact = 1, blocks = 2 };

struct Sequence {
  Progression records;  // of the source
  Order order = Order::given;
  std::int64_t block_records = 0;  // of Order::blocks
  std::int64_t window_blocks = 0;
  std::int64_t streams = 0;
  Progression positions;    // of the ordered records: an epoch
  bool reshuffles = true;   // each epoch has an order of its own
  std::int64_t epochs = 1;  // -1: without end
  std::int64_t batch_rows = 0;
  bool batch_ends_with_epoch = false;  // repeat came after batch
  bool drop_remainder = false;
  std::int64_t first_block = 0;  // of an unshuffled, unbatched sequence: which bytes are read
  std::int64_t block_count = 0;
};

// Throws Error(invalid) for numbers that no sequence has.
Sequence decode_sequence(std::span<const std::int64_t> numbers);

}  // namespace tfrfast::tensorflow
