// Shards as the ops read them.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/index/progressive_index.h"
#include "core/order/progression.h"
#include "core/read/reader.h"
#include "core/read/source_spec.h"
#include "tensorflow/records.h"

namespace tfrfast::tensorflow {

// A shard is cut into blocks of this many bytes. A block's records are those whose frames begin in
// its bytes, so no table is needed to find them.
inline constexpr std::uint64_t kBlockBytes = 1 << 20;
// The same for compressed shards, in bytes of the file. A block has the records of the spans that
// begin in it: mostly none, else one span of about 1 MiB.
inline constexpr std::uint64_t kCompressedBlockBytes = 256 << 10;
// A file that would have more blocks has blocks that are larger, by a power of two. So even a huge
// sparse file is read to its end.
inline constexpr std::uint64_t kMaxBlocks = 1 << 15;

// How the ops open shards: compressed as the user said, even if they look otherwise. Damage is
// reported when its turn comes.
ShardSetOptions shard_options(const SourceSpec& spec);
std::shared_ptr<const ShardSet> open_shards(const SourceSpec& spec,
                                            const OpeningProgress& progress = nullptr);

// Whether TensorFlow takes this for the end of the shard: a tail that is too short for a header.
bool is_clean_end(const Damage& damage) noexcept;

// Every stride-th shard of a source, from `first` on.
struct Files {
  std::int64_t first = 0;
  std::int64_t stride = 1;
  bool operator==(const Files&) const = default;
};
Files files_of(std::span<const std::int64_t> numbers);  // throws Error(invalid)

// Safe from many threads.
class Source {
 public:
  // A planned source opens everything, and throws Error if it is not the data that the spec
  // describes. Any other opens shards when they are reached.
  explicit Source(SourceSpec spec);
  // A planned source over shards that are open already.
  Source(SourceSpec spec, std::shared_ptr<const ShardSet> shards);

  const SourceSpec& spec() const noexcept { return spec_; }
  std::size_t shard_count() const noexcept { return spec_.shards.size(); }
  std::int64_t block_count(std::size_t shard) const noexcept { return block_counts_[shard]; }

  // The records of a shard's block that are `wanted`. They are numbered within the source or,
  // without a plan, within the shard. `end` is the number after the last one. Errors are in the
  // result.
  Records read_block(std::size_t shard, std::int64_t block, const Progression& wanted,
                     std::int64_t end) const;

  // Planned sources only, from here on.
  Records read(std::span<const std::int64_t> records) const;
  const std::shared_ptr<const Reader>& reader() const noexcept { return reader_; }
  const ShardSet& shard_set() const noexcept { return reader_->shards(); }
  // The block of a shard that its record `number` begins in.
  std::int64_t block_of(std::size_t shard, std::uint64_t number) const;

  // Whether all files are what they were when this was made.
  bool still_fits() const;
  // Throws Error stale_index if a file that changed since `then`, a source of the same spec, holds
  // its records elsewhere now.
  void refuse_other_records(const Source& then) const;

 private:
  struct LateShard {  // a shard that is opened when it is reached
    std::mutex mutex;
    std::shared_ptr<ProgressiveIndex> shard;
  };
  void plan(std::shared_ptr<const ShardSet> shards);
  std::shared_ptr<ProgressiveIndex> reach(std::size_t shard) const;
  Records read_stretch(const IndexedShard& shard, const ProgressiveIndex::Stretch& stretch,
                       std::int64_t first_record, const Progression& wanted,
                       std::int64_t end) const;

  ReadOptions read_options() const { return {spec_.verify, spec_.skip_damage}; }
  Records::Place place() const {
    return spec_.zero_copy ? Records::Place::mapped : Records::Place::copied;
  }

  SourceSpec spec_;
  std::vector<FileFacts> facts_;  // of each shard when it was opened; all zeros if it was missing
  std::vector<std::int64_t> block_counts_;    // of each shard
  std::unique_ptr<LateShard[]> late_shards_;  // of a source that is not planned
  std::shared_ptr<const Reader> reader_;      // of a planned one
};

}  // namespace tfrfast::tensorflow
