#include "tensorflow/sequence.h"

#include "core/base/error.h"

namespace tfrfast::tensorflow {
namespace {

constexpr std::int64_t kVersion = 1;
constexpr std::size_t kNumbers = 18;

}  // namespace

Sequence decode_sequence(std::span<const std::int64_t> numbers) {
  if (numbers.size() != kNumbers || numbers[0] != kVersion) {
    throw Error(ErrorKind::invalid,
                "This is no sequence of this version of tfrfast: the graph was built by another "
                "one. Build it again.");
  }
  Sequence sequence;
  sequence.records = {numbers[1], numbers[2], numbers[3]};
  sequence.order = static_cast<Order>(numbers[4]);
  sequence.block_records = numbers[5];
  sequence.window_blocks = numbers[6];
  sequence.streams = numbers[7];
  sequence.positions = {numbers[8], numbers[9], numbers[10]};
  sequence.epochs = numbers[11];
  sequence.batch_rows = numbers[12];
  sequence.batch_ends_with_epoch = numbers[13] != 0;
  sequence.drop_remainder = numbers[14] != 0;
  sequence.first_block = numbers[15];
  sequence.block_count = numbers[16];
  sequence.reshuffles = numbers[17] != 0;
  return sequence;
}

}  // namespace tfrfast::tensorflow
