// The two halves of a shuffle larger than memory: records are dealt to buckets by the keys they
// will be sorted by, then each bucket is sorted in memory.
//
// A record's key is its number's place in Permutation(kShuffleKeys, seed, 0). Keys are never equal.
// Sorting by them gives a uniformly random order, which depends only on the seed and the records'
// numbers, not on how many buckets there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/order/permutation.h"
#include "core/write/content_hash.h"
#include "core/write/frame_buffer.h"

namespace tfrfast {

inline constexpr std::int64_t kShuffleKeys = kMaxPermutationSize;

// A bucket's records in their final order. Immutable; owns its memory.
class ShuffledBucket {
 public:
  // Takes frames whose payloads begin with the record's number. Throws Error corrupt, which names
  // `origin`, if the bytes are anything else.
  ShuffledBucket(std::vector<FrameBuffer> frames, std::uint64_t seed, const std::string& origin);

  std::size_t size() const noexcept { return entries_.size(); }
  std::span<const std::uint8_t> operator[](std::size_t row) const noexcept;

 private:
  struct Entry {
    std::int64_t key;
    const std::uint8_t* frame;
  };

  std::vector<FrameBuffer> frames_;
  std::vector<Entry> entries_;
};

// Takes records in the order of their numbers and deals them to buckets. One thread at a time.
class ShuffleBuckets {
 public:
  struct Options {
    std::string folder;  // for the buckets' files; if empty, all stay in memory
    std::size_t bucket_count = 1;
    std::size_t buffer_bytes = 0;  // of each bucket; not used in memory
    std::uint64_t seed = 0;
  };
  struct State {
    RecordTotals totals;
    std::vector<std::uint64_t> bucket_bytes;
    std::vector<std::uint64_t> bucket_records;
  };

  explicit ShuffleBuckets(const Options& options);
  // Goes on where write_out() left off, and cuts off what was written later. Throws Error io, and
  // `truncated` if a file is shorter than it was.
  ShuffleBuckets(const Options& options, State state);

  // Throws Error io. After that only a new object with a saved state can go on.
  void add(std::span<const std::uint8_t> payload);
  void write_out();

  const State& state() const noexcept { return state_; }

  // All of a bucket's records, sorted. A bucket in memory is empty afterwards. Throws Error.
  ShuffledBucket take(std::size_t bucket);
  void remove(std::size_t bucket) noexcept;  // its file

 private:
  std::size_t next_bucket();
  std::string bucket_path(std::size_t bucket) const;
  void append(std::size_t bucket, std::span<const std::uint8_t> frames);
  void add_in_memory(std::span<const std::uint8_t> number, std::span<const std::uint8_t> payload);

  Options options_;
  Permutation keys_;
  State state_;
  std::vector<FrameBuffer> buffers_;    // one for each bucket; in memory, the full ones
  std::vector<std::int64_t> upcoming_;  // keys of the next records
  std::size_t upcoming_used_ = 0;
};

}  // namespace tfrfast
