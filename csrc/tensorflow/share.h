// What one process reads of a source.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/order/sequence.h"
#include "tensorflow/last_made.h"
#include "tensorflow/registry.h"
#include "tensorflow/steps_ahead.h"

namespace tfrfast::tensorflow {

// Some shards of a source, as a source of their own: their records and blocks are counted from 0.
// If there are fewer shards than processes, a share is some records of every shard. So the shares
// of several processes have nothing in common, even if each process draws another order. Safe from
// many threads.
class Share {
 public:
  Share(std::shared_ptr<const Source> source, Files files);

  const std::shared_ptr<const Source>& source() const noexcept { return source_; }
  Files files() const noexcept { return files_; }

  // Planned sources only: how many batches there are, and the records of a batch, numbered as in
  // the source. `seed` is the order's. Throws Error.
  std::int64_t batch_count(const Sequence& sequence) const;
  std::vector<std::int64_t> records_of_batch(const Sequence& sequence, std::uint64_t seed,
                                             std::int64_t step) const;

  // Sources without a plan only, which are read in blocks: how many there are, and the blocks of
  // one of these files that may hold `wanted` records, as begin and end. The latter throws Error
  // out_of_range if there is no such file.
  std::int64_t block_count() const noexcept { return first_blocks_.back(); }
  void begin() const noexcept;  // all of its files
  std::pair<std::int64_t, std::int64_t> blocks_of_file(const Progression& wanted,
                                                       std::int64_t turn) const;
  // The `wanted` records of blocks [begin, end). Throws Error out_of_range for blocks that do not
  // exist. All other errors are in the result.
  Found find(const Progression& wanted, std::int64_t begin, std::int64_t end) const;

 private:
  struct Place {
    std::size_t turn = 0;  // of the shard, among these
    std::int64_t within = 0;
  };
  static Place place(const std::vector<std::int64_t>& firsts, std::int64_t number);
  std::size_t shard(std::size_t turn) const noexcept {
    return static_cast<std::size_t>(shards_.at(static_cast<std::int64_t>(turn)));
  }
  std::int64_t record_count() const noexcept { return first_records_.back(); }
  // The same calls on the records of this share. Files that take turns do so in another order then,
  // which takes time for each file to make, so the last one is kept.
  std::shared_ptr<const Sequence> own(const Sequence& sequence) const;
  // The `wanted` records of this share as numbers of records in a shard. `before` of this share's
  // records come before that shard.
  Progression in_shard(const Progression& wanted, std::int64_t before) const noexcept;
  // How many records of this share come before a shard. May walk through all shards before it.
  std::int64_t records_before(std::size_t turn) const;
  // The same, if it is known without a walk.
  std::optional<std::int64_t> known_before(std::size_t turn) const;

  void announce_after(std::size_t turn, const Progression& wanted, std::uint64_t bytes) const;

  std::shared_ptr<const Source> source_;
  Files files_;
  Progression shards_;   // the shards that are read
  Progression records_;  // the records that are read in each of them
  // The first number of each shard, and the one after the last shard.
  std::vector<std::int64_t> first_blocks_{0};   // without a plan
  std::vector<std::int64_t> first_records_{0};  // of a planned source
  struct Counts {
    std::mutex mutex;
    std::vector<std::int64_t> first_records{0};
  };
  struct Own {
    Sequence of;
    Sequence sequence;
  };
  std::unique_ptr<LastMade<Own>> own_ = std::make_unique<LastMade<Own>>();
  std::unique_ptr<Counts> counts_ = std::make_unique<Counts>();  // found on the way, without a plan
};

// A kernel's hold on what it reads. Safe from many threads.
class ShareHolder {
 public:
  std::shared_ptr<const Sequence> sequence(std::string_view encoded) {
    return sequences_.get(encoded);
  }
  // With `look`, checks whether the files are still what they were. Throws Error.
  std::shared_ptr<const Share> open(std::string_view source, Files files, bool look = false);
  // A batch of a planned share will be read now; `text` is the encoded sequence. See PlaceHolder.
  void come_to(const std::shared_ptr<const Share>& share,
               const std::shared_ptr<const Sequence>& sequence, std::string_view text,
               std::uint64_t seed, std::int64_t step);
  PlaceHolder& place() noexcept { return place_; }

 private:
  SourceHolder sources_;
  std::mutex mutex_;  // guards the next one
  std::shared_ptr<const void> use_;
  PlaceHolder place_;
  LastMade<Share> shares_;
  LastDecoded<Sequence> sequences_;
};

}  // namespace tfrfast::tensorflow
