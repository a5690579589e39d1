// The part of a source that one process reads.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/order/sequence.h"
#include "tensorflow/last_made.h"
#include "tensorflow/source.h"

namespace tfrfast::tensorflow {

// Where a share's records lie: in some shards, and there some of the records.
struct ShareBounds {
  Progression shards;
  Progression records;  // of each shard
};
ShareBounds bounds_of(Files files, std::int64_t shard_count, std::int64_t max_records) noexcept;

// Some shards of a planned source, as a source of their own: records are counted from 0. If there
// are fewer shards than processes, a share is some records of every shard. So the shares of several
// processes are disjoint, even if each process draws a different order. Safe from many threads.
class Share {
 public:
  Share(std::shared_ptr<const Source> source, Files files);

  const std::shared_ptr<const Source>& source() const noexcept { return source_; }
  Files files() const noexcept { return files_; }

  // The number of batches, and the records of a batch, numbered as in the source. `seed` is the
  // order's. Throws Error.
  std::int64_t batch_count(const Sequence& sequence) const;
  std::vector<std::int64_t> records_of_batch(const Sequence& sequence, std::uint64_t seed,
                                             std::int64_t step) const;

 private:
  std::int64_t record_count() const noexcept { return first_records_.back(); }
  // The same calls on the records of this share. Interleaved files of a share have another order,
  // which takes time per file to make, so the last sequence is kept.
  std::shared_ptr<const Sequence> own(const Sequence& sequence) const;

  std::shared_ptr<const Source> source_;
  Files files_;
  Progression shards_;   // the shards to read
  Progression records_;  // the records to read in each shard
  // The first number of each shard, then the end of the last shard.
  std::vector<std::int64_t> first_records_{0};
  struct Own {
    Sequence of;
    Sequence sequence;
  };
  std::unique_ptr<LastMade<Own>> own_ = std::make_unique<LastMade<Own>>();
};

}  // namespace tfrfast::tensorflow
