#include "core/order/block_shuffle.h"

#include <algorithm>
#include <numeric>

#include "core/order/many_permutations.h"
#include "core/order/permutation.h"
#include "core/order/ranges.h"

namespace tfrfast {
namespace {

constexpr int kWindowRounds = 24;  // windows are often small

// The number of the tail's slice that a stream takes. The bits that distinguish ranks come first:
// of 2, 4, 8, ... ranks, each rank's streams take neighbouring slices and share few blocks with
// others.
std::int64_t slice_number(std::int64_t stream, std::int64_t streams) noexcept {
  std::int64_t high = 0, width = 1;
  while (streams % (2 * width) == 0) {
    high = 2 * high + (stream / width) % 2;
    width *= 2;
  }
  return high * (streams / width) + stream / width;
}

const BlockShape& checked(const BlockShape& shape) {
  check_range("block_records", shape.block_records, 1, kMaxBlockRecords);
  check_range("window_blocks", shape.window_blocks, 1, kMaxWindowBlocks);
  check_range("streams", shape.streams, 1, kMaxStreams);
  return shape;
}

}  // namespace

BlockShuffle::BlockShuffle(std::int64_t records, const BlockShape& shape)
    : Order(kName, records, records, checked(shape).streams), shape_(shape) {
  const std::int64_t size = records;
  const std::int64_t block = shape.block_records;
  blocks_ = size / block + (size % block != 0);
  missing_ = size % block == 0 ? 0 : block - size % block;
  // A short block needs a tail: the tail's records fill the short block's missing places.
  stream_blocks_ = std::max<std::int64_t>(blocks_ - (missing_ != 0), 0) / shape.streams;
  streamed_ = stream_blocks_ * shape.streams * block;

  const std::int64_t tail = size - streamed_;
  std::vector<std::int64_t> streams(static_cast<std::size_t>(shape.streams));
  for (std::int64_t s = 0; s < shape.streams; ++s) {
    streams[static_cast<std::size_t>(slice_number(s, shape.streams))] = s;
  }
  tail_slices_.resize(streams.size());
  std::int64_t begin = 0;
  for (const std::int64_t s : streams) {
    tail_slices_[static_cast<std::size_t>(s)] = begin;
    begin += tail / shape.streams + (s < tail % shape.streams);
  }
}

// "The list" is all blocks in the order of `blocks_`. Entry row * streams + stream of the list is
// the stream's block number `row`. The tail's blocks are the last entries.
BlockShuffle::Epoch::Epoch(const BlockShuffle& shuffle, std::uint64_t seed,
                           std::uint64_t epoch) noexcept
    : shuffle_(&shuffle),
      key_(derive_key(KeyPurpose::windows, seed, epoch)),
      keys_(expand_key(key_, kWindowRounds)),
      blocks_(shuffle.blocks_, derive_key(KeyPurpose::blocks, seed, epoch)),
      tail_entry_(shuffle.stream_blocks_ * shuffle.shape_.streams),
      short_entry_(shuffle.missing_ == 0 ? -1 : blocks_.inverse(shuffle.blocks_ - 1)) {}

// The tail counts as an extra stream, and each block of the tail as a window.
std::uint64_t BlockShuffle::Epoch::tweak(std::int64_t stream, std::int64_t window) const noexcept {
  return siphash(key_, {static_cast<std::uint64_t>(stream), static_cast<std::uint64_t>(window)});
}

class BlockShuffle::Epoch::Lookup {
 public:
  explicit Lookup(const Epoch& epoch) noexcept
      : in_window(epoch.keys_), in_block(epoch.keys_), epoch_(epoch) {}

  // Returns the begin of the position's window in its stream, in records.
  std::int64_t add_streamed(std::int64_t stream, std::int64_t in_stream) noexcept {
    Window& window = recent_[static_cast<std::size_t>(stream) % kRecentWindows];
    if (window.stream != stream || in_stream < window.begin || in_stream >= window.end) {
      window = find_window(stream, in_stream);
    }
    in_window.add(window.end - window.begin, window.tweak, in_stream - window.begin);
    return window.begin;
  }

  // Adds the `listed`-th record of the tail's blocks, each of which has its own order. Returns the
  // block's entry in the list.
  std::int64_t add_listed(std::int64_t listed) noexcept {
    const std::int64_t block = epoch_.shuffle_->shape_.block_records;
    const std::int64_t missing = epoch_.shuffle_->missing_;
    std::int64_t records = block;
    if (epoch_.short_entry_ >= epoch_.tail_entry_) {
      const std::int64_t short_begin = (epoch_.short_entry_ - epoch_.tail_entry_) * block;
      if (listed >= short_begin + (block - missing)) {
        listed += missing;
      } else if (listed >= short_begin) {
        records = block - missing;
      }
    }
    const std::int64_t entry = epoch_.tail_entry_ + listed / block;
    in_block.add(records, epoch_.tweak(epoch_.shuffle_->shape_.streams, entry), listed % block);
    return entry;
  }

  ManyPermutations in_window, in_block;

 private:
  struct Window {
    std::int64_t stream = -1;
    std::int64_t begin = 0;  // records of the stream
    std::int64_t end = 0;
    std::uint64_t tweak = 0;
  };

  Window find_window(std::int64_t stream, std::int64_t in_stream) const noexcept {
    const BlockShape& shape = epoch_.shuffle_->shape_;
    const std::int64_t ahead = stream * shape.window_blocks / shape.streams * shape.block_records;
    const std::int64_t window_records = shape.window_blocks * shape.block_records;
    const std::int64_t window = (in_stream + ahead) / window_records;
    const std::int64_t begin = window * window_records - ahead;
    const std::int64_t stream_records = epoch_.shuffle_->stream_blocks_ * shape.block_records;
    return {stream, std::max<std::int64_t>(begin, 0),
            std::min(begin + window_records, stream_records), epoch_.tweak(stream, window)};
  }

  // A batch needs each of its streams many times.
  static constexpr std::size_t kRecentWindows = 64;
  const Epoch& epoch_;
  Window recent_[kRecentWindows];
};

void BlockShuffle::Epoch::evaluate_lanes(const std::int64_t* positions, std::size_t count,
                                         std::int64_t* out, Lookup& lookup) const noexcept {
  const std::int64_t block = shuffle_->shape_.block_records;
  const std::int64_t streams = shuffle_->shape_.streams;
  const std::int64_t tail_positions = shuffle_->records() - shuffle_->streamed_;
  std::size_t windowed[kLanes], listed[kLanes];
  std::int64_t begins[kLanes], entries[kLanes], offsets[kLanes];
  lookup.in_window.clear();
  lookup.in_block.clear();

  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t position = positions[i];
    if (position < shuffle_->streamed_) {
      windowed[lookup.in_window.count()] = i;
      entries[i] = position % streams;  // the row is added below
      begins[i] = lookup.add_streamed(entries[i], position / streams);
    } else {
      const std::int64_t within = position - shuffle_->streamed_;
      const auto stream = static_cast<std::size_t>(within % streams);
      listed[lookup.in_block.count()] = i;
      entries[i] = lookup.add_listed(shuffle_->tail_slices_[stream] + within / streams);
    }
  }
  lookup.in_window.run();
  for (std::size_t k = 0; k < lookup.in_window.count(); ++k) {
    const std::size_t i = windowed[k];
    const std::int64_t in_stream = begins[i] + lookup.in_window.result(k);
    entries[i] += in_stream / block * streams;
    offsets[i] = in_stream % block;
    const std::int64_t lacking = offsets[i] - (block - shuffle_->missing_);
    if (entries[i] != short_entry_ || lacking < 0) continue;
    listed[lookup.in_block.count()] = i;
    entries[i] = lookup.add_listed(tail_positions + lacking);
  }
  lookup.in_block.run();
  for (std::size_t k = 0; k < lookup.in_block.count(); ++k) {
    offsets[listed[k]] = lookup.in_block.result(k);
  }
  blocks_.evaluate(entries, count, out);
  for (std::size_t i = 0; i < count; ++i) out[i] = out[i] * block + offsets[i];
}

void BlockShuffle::Epoch::evaluate(const std::int64_t* positions, std::size_t count,
                                   std::int64_t* out) const noexcept {
  Lookup lookup(*this);
  for (std::size_t done = 0; done < count; done += kLanes) {
    evaluate_lanes(positions + done, std::min(count - done, kLanes), out + done, lookup);
  }
}

std::unique_ptr<const EpochOrder> BlockShuffle::of_epoch(std::uint64_t seed,
                                                         std::uint64_t epoch) const {
  return std::make_unique<const Epoch>(*this, seed, epoch);
}

std::string BlockShuffle::describe_shuffle(std::uint64_t seed) const {
  return "shuffle=blocks block_records=" + std::to_string(shape_.block_records) +
         " window_blocks=" + std::to_string(shape_.window_blocks) +
         " streams=" + std::to_string(shape_.streams) + " seed=" + std::to_string(seed);
}

void BlockShuffle::encode(Encoder& encoder) const {
  encoder.integer(records());
  encoder.integer(shape_.block_records);
  encoder.integer(shape_.window_blocks);
  encoder.integer(shape_.streams);
}

std::shared_ptr<const Order> BlockShuffle::decode(Decoder& decoder) {
  const std::int64_t records = decoder.integer();
  BlockShape shape;
  shape.block_records = decoder.integer();
  shape.window_blocks = decoder.integer();
  shape.streams = decoder.integer();
  return std::make_shared<const BlockShuffle>(records, shape);
}

}  // namespace tfrfast
