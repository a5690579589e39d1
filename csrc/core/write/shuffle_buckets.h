// Shuffles more records than fit in memory. First, records are dealt to buckets by their sort keys.
// Then each bucket is sorted in memory.
//
// A record's key is the place of its number in Permutation(kShuffleKeys, seed, 0), so keys are
// unique. Sorting by key gives a uniformly random order, which depends only on the seed and the
// records' numbers, not on the number of buckets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/order/permutation.h"
#include "core/storage/storage_options.h"
#include "core/write/content_hash.h"
#include "core/write/frame_buffer.h"

namespace tfrfast {

inline constexpr std::int64_t kShuffleKeys = kMaxPermutationSize;

// A bucket's records in their final order. Immutable. Owns its memory.
class ShuffledBucket {
 public:
  // A part of an intermediate file.
  struct Place {
    std::string path;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
  };
  // Frames whose payloads begin with the record's number, and their origin for messages.
  struct Piece {
    FrameBuffer frames;
    std::string origin;
    std::uint64_t offset = 0;
  };

  // Throws Error corrupt for other bytes than such frames.
  ShuffledBucket(std::vector<Piece> pieces, std::uint64_t seed);
  // Reads the pieces at these places, which must have `record_count` records in all. Throws Error.
  static ShuffledBucket read(std::span<const Place> places, std::uint64_t seed,
                             std::size_t record_count, const StorageOptions& storage);

  std::size_t size() const noexcept { return entries_.size(); }
  std::span<const std::uint8_t> operator[](std::size_t row) const noexcept;

  // Appends all frames in order, numbers included, to a local file. Returns the bytes of the frames
  // before each of the ascending keys. Throws Error io.
  std::vector<std::uint64_t> append_to(const std::string& path,
                                       std::span<const std::int64_t> keys) const;

 private:
  struct KeyedFrame {
    std::int64_t key;
    const std::uint8_t* frame;
  };

  std::vector<Piece> pieces_;
  std::vector<KeyedFrame> entries_;
};

// Returns the keys at these ascending places of the order of `record_count` records; kShuffleKeys
// for places after the last. Threads evaluate all keys twice.
std::vector<std::int64_t> shuffle_keys_at(std::span<const std::uint64_t> places,
                                          std::uint64_t record_count, std::uint64_t seed);

// Takes records in the order of their numbers, and deals each to a bucket. One thread at a time.
class ShuffleBuckets {
 public:
  struct Options {
    std::string folder;  // for the buckets' files; empty: buckets stay in memory
    std::size_t bucket_count = 1;
    std::size_t buffer_bytes = 0;  // of each bucket; unused for buckets in memory
    std::uint64_t seed = 0;
  };
  struct WrittenBuckets {
    RecordTotals totals;
    std::vector<std::uint64_t> bucket_bytes;
    std::vector<std::uint64_t> bucket_records;
  };

  explicit ShuffleBuckets(const Options& options);
  // Continues after the last write_out(), and cuts off later bytes. Throws Error io, and
  // `truncated` if a file is shorter than after write_out().
  ShuffleBuckets(const Options& options, WrittenBuckets state);

  // Throws Error io. After an Error, only a new object can continue, from a saved state.
  void add(std::span<const std::uint8_t> payload);
  void write_out();

  const WrittenBuckets& state() const noexcept { return state_; }

  // Returns all records of a bucket, sorted. A bucket in memory is empty afterwards. Throws Error.
  ShuffledBucket take(std::size_t bucket);
  void remove(std::size_t bucket) noexcept;  // removes the bucket's file

 private:
  std::size_t next_bucket();
  std::string bucket_path(std::size_t bucket) const;
  void append(std::size_t bucket, std::span<const std::uint8_t> frames);
  void add_in_memory(std::span<const std::uint8_t> number, std::span<const std::uint8_t> payload);

  Options options_;
  Permutation keys_;
  WrittenBuckets state_;
  std::vector<FrameBuffer> buffers_;    // one per bucket; in memory: the full buffers
  std::vector<std::int64_t> upcoming_;  // keys of the next records
  std::size_t upcoming_used_ = 0;
};

}  // namespace tfrfast
