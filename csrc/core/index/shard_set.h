// Presents many shards as one array of records.
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
  bool skip_damage = false;  // record structural damage in the index instead of throwing
  unsigned threads = 1;
  // A set of at most this many shards opens all of them, which finds most errors early. In a larger
  // set, a shard is opened on its first read if an index of its folder describes the shard.
  std::size_t max_opened_at_once = 64;
};

// The bytes indexed so far, and all bytes. Called on the opening thread, a few times a second. May
// throw to end the opening.
using OpeningProgress = std::function<void(std::uint64_t done_bytes, std::uint64_t all_bytes)>;

// Safe from many threads. Immutable, except that shards may be opened on their first read.
class ShardSet {
 public:
  struct Place {
    std::size_t shard = 0;
    std::uint64_t number = 0;  // within the shard
  };

  // Examines all shards, and opens and indexes shards as needed, in parallel. A repeated path
  // counts twice and is opened once. Throws the Error of the first shard, in the order of `paths`,
  // that is missing, cannot be opened or, unless `skip_damage`, is damaged.
  static std::shared_ptr<const ShardSet> open(const std::vector<std::string>& paths,
                                              const ShardSetOptions& options,
                                              const OpeningProgress& progress = nullptr);
  // Throws Error invalid if the records exceed an int64.
  explicit ShardSet(std::vector<IndexedShard> shards, ShardSetOptions options = {});

  // Joins the records of several sets, end to end, into one set with the first set's options.
  // Shares files and indexes. Throws Error invalid for no sets, or too many records.
  static std::shared_ptr<const ShardSet> joined(
      const std::vector<std::shared_ptr<const ShardSet>>& sets);

  // The first record of each joined set. {0} for a set that was not joined.
  const std::vector<std::int64_t>& source_starts() const noexcept { return *source_starts_; }
  const std::shared_ptr<const std::vector<std::int64_t>>& shared_source_starts() const noexcept {
    return source_starts_;
  }

  // The options of the opening.
  const ShardSetOptions& options() const noexcept { return options_; }

  std::size_t size() const noexcept { return slots_.size(); }
  // Opens the shard on its first read. Throws like ShardSlot::open().
  const IndexedShard& operator[](std::size_t shard) const {
    const IndexedShard* const opened = opened_[shard].load(std::memory_order_acquire);
    return opened != nullptr ? *opened : open_lazy(shard);
  }
  bool is_open(std::size_t shard) const noexcept {
    return opened_[shard].load(std::memory_order_acquire) != nullptr;
  }
  // Opens several shards of a remote storage at once, because each opening waits for a round trip.
  // `shards` must not be empty. Throws like ShardSlot::open().
  void open_remote(std::span<const std::size_t> shards) const;
  // Throws Error stale_index if someone who may write `file`, a file of tfrfast about these shards,
  // may not write all of them (sidecar.h). `what` is "The key file", and `advice` says what to do.
  void refuse_unless_believed(const StoredFile& file, const std::string& what,
                              const std::string& advice) const;

  // The facts known without opening the shard.
  const ShardSlot& slot(std::size_t shard) const noexcept { return *slots_[shard]; }
  std::uint64_t record_count() const noexcept { return first_records_.back(); }
  std::uint64_t first_record(std::size_t shard) const noexcept { return first_records_[shard]; }

  // `record` must be below record_count(). `hint` is the shard to try first, such as the previous
  // record's.
  Place place(std::uint64_t record, std::size_t hint = 0) const noexcept {
    if (record < first_records_[hint] || record >= first_records_[hint + 1]) {
      hint = static_cast<std::size_t>(
          std::upper_bound(first_records_.begin(), first_records_.end(), record) -
          first_records_.begin() - 1);
    }
    return {hint, record - first_records_[hint]};
  }

  // A hash of the shards' names (without folders), sizes and record counts, in order. Identifies
  // the data, and is the same on every machine.
  std::uint64_t fingerprint() const noexcept { return fingerprint_; }

 private:
  // Owners of the slots, and of everything that the slots point to.
  using Kept = std::vector<std::shared_ptr<const void>>;
  ShardSet(std::vector<const ShardSlot*> slots, Kept kept, ShardSetOptions options);
  void number_records();
  const IndexedShard& open_lazy(std::size_t shard) const;

  ShardSetOptions options_;
  Kept kept_;
  std::vector<const ShardSlot*> slots_;
  // The open shards. Saves an indirection through the slot.
  std::unique_ptr<std::atomic<const IndexedShard*>[]> opened_;
  std::vector<std::uint64_t> first_records_;  // first record of each shard, then the record count
  std::uint64_t fingerprint_ = 0;
  std::shared_ptr<const std::vector<std::int64_t>> source_starts_;
};

}  // namespace tfrfast
