// Many shards as one array of records.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/index/opening.h"
#include "core/index/shard_slot.h"

namespace tfrfast {

struct ShardSetOptions {
  IoMode io = IoMode::automatic;
  IndexOptions index;
  bool skip_damage = false;  // structural damage is recorded in the index, not thrown
  unsigned threads = 1;
  // Up to so many shards are opened at once, which finds most errors early. Of more, those of this
  // machine that an index of their folder describes are opened when they are first read.
  std::size_t max_opened_at_once = 64;
};

// Bytes indexed so far, and bytes in all. Called on the thread that opens, a few times a second.
// May throw to end the opening.
using OpeningProgress = std::function<void(std::uint64_t done_bytes, std::uint64_t all_bytes)>;

// Safe from many threads. Immutable, but for shards that are opened when they are first read.
class ShardSet {
 public:
  struct Place {
    std::size_t shard = 0;
    std::uint64_t number = 0;  // within the shard
  };

  // Examines all shards, and opens and indexes those that need it, in parallel. A path that is
  // given twice counts twice and is opened once. Throws the Error of the first shard, in the order
  // given, that is missing, cannot be opened or, unless `skip_damage` is set, is damaged.
  static std::shared_ptr<const ShardSet> open(const std::vector<std::string>& paths,
                                              const ShardSetOptions& options,
                                              const OpeningProgress& progress = nullptr);
  // Throws Error invalid if there are more records than an int64 can number.
  explicit ShardSet(std::vector<IndexedShard> shards, ShardSetOptions options = {});

  // The records of several sets end to end, as one set with the options of the first. It shares
  // their files and indexes. Throws Error invalid for no sets, or too many records.
  static std::shared_ptr<const ShardSet> joined(
      const std::vector<std::shared_ptr<const ShardSet>>& sets);

  // Where the records of each joined set begin. Of a set that was not joined, 0.
  const std::vector<std::int64_t>& source_starts() const noexcept { return *source_starts_; }
  const std::shared_ptr<const std::vector<std::int64_t>>& shared_source_starts() const noexcept {
    return source_starts_;
  }

  // With which it was opened.
  const ShardSetOptions& options() const noexcept { return options_; }

  std::size_t size() const noexcept { return slots_.size(); }
  // Opens the shard if nobody has read it before. Throws what ShardSlot::open() throws.
  const IndexedShard& operator[](std::size_t shard) const {
    const IndexedShard* const opened = opened_[shard].load(std::memory_order_acquire);
    return opened != nullptr ? *opened : open_late(shard);
  }
  bool is_open(std::size_t shard) const noexcept {
    return opened_[shard].load(std::memory_order_acquire) != nullptr;
  }
  // Opens several shards of a far storage at once, since each waits for a round trip. There is at
  // least one. Throws what ShardSlot::open() throws.
  void open_far(std::span<const std::size_t> shards) const;
  // What is known about it without opening it.
  const ShardSlot& slot(std::size_t shard) const noexcept { return *slots_[shard]; }
  std::uint64_t record_count() const noexcept { return first_records_.back(); }
  std::uint64_t first_record(std::size_t shard) const noexcept { return first_records_[shard]; }

  // `record` must be below record_count(). `hint` is the shard to look at first, such as that of
  // the record before.
  Place place(std::uint64_t record, std::size_t hint = 0) const noexcept {
    if (record < first_records_[hint] || record >= first_records_[hint + 1]) {
      hint = static_cast<std::size_t>(
          std::upper_bound(first_records_.begin(), first_records_.end(), record) -
          first_records_.begin() - 1);
    }
    return {hint, record - first_records_[hint]};
  }

  // A hash of the shards' names (without folders), sizes and record counts, in order. It tells
  // these data from others, and is the same on every machine.
  std::uint64_t fingerprint() const noexcept { return fingerprint_; }

 private:
  // What the slots lie in, and what these need.
  using Kept = std::vector<std::shared_ptr<const void>>;
  ShardSet(std::vector<const ShardSlot*> slots, Kept kept, ShardSetOptions options);
  void number_records();
  const IndexedShard& open_late(std::size_t shard) const;

  ShardSetOptions options_;
  Kept kept_;
  std::vector<const ShardSlot*> slots_;
  // What is open of the slots, so that a look at it takes one step less.
  std::unique_ptr<std::atomic<const IndexedShard*>[]> opened_;
  std::vector<std::uint64_t> first_records_;  // of each shard, and the record count at the end
  std::uint64_t fingerprint_ = 0;
  std::shared_ptr<const std::vector<std::int64_t>> source_starts_;
};

}  // namespace tfrfast
