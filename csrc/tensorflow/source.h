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
#include "core/read/reader.h"
#include "tensorflow/records.h"
#include "tensorflow/sequence.h"
#include "tensorflow/source_spec.h"

namespace tfrfast::tensorflow {

// A shard's records in file order are cut into blocks of this many bytes: a block's records are
// those whose frames begin in its bytes. Which they are takes no table to know.
inline constexpr std::uint64_t kBlockBytes = 1 << 20;
// The same for compressed shards, in bytes of the file: a block has what the spans that begin in it
// hold, which is one of about 1 MiB or, more often, nothing.
inline constexpr std::uint64_t kCompressedBlockBytes = 256 << 10;
// Of files that would have more of them, blocks are larger by a power of two: a sparse file of any
// size is gone through in the end.
inline constexpr std::uint64_t kMostBlocks = 1 << 15;

// How the ops want shards opened: compressed as the user said, whatever they look like; damage is
// met when its turn comes.
ShardSetOptions shard_options(std::optional<Compression> compression);

// Whether TensorFlow takes this for the end of the shard: a tail that is too short for a header.
bool is_clean_end(const Damage& damage) noexcept;

// Safe from many threads.
class Source {
 public:
  // A planned source opens everything and throws Error if it is not the data that the spec
  // describes; any other opens shards when they are reached.
  explicit Source(SourceSpec spec);
  // A planned source of what is open already.
  Source(SourceSpec spec, std::shared_ptr<const ShardSet> shards);

  const SourceSpec& spec() const noexcept { return spec_; }
  std::int64_t block_count() const noexcept { return first_blocks_.back(); }

  // Throws Error(invalid) for a block that does not exist; all other trouble is in the result.
  Records read_block(const Sequence& sequence, std::int64_t block) const;

  // The record numbers of a step; `seed` is the order's.
  static std::vector<std::int64_t> records_of_batch(const Sequence& sequence, std::uint64_t seed,
                                                    std::int64_t step);

  // Planned sources only, from here on.
  Records read(std::span<const std::int64_t> records) const;
  const std::shared_ptr<const Reader>& reader() const noexcept { return reader_; }
  const ShardSet& shard_set() const noexcept { return reader_->shards(); }
  std::int64_t block_of(std::int64_t record) const;

  // Whether all files are what they were when this was made.
  bool still_fits() const;
  // Throws Error stale_index if a file that changed since `then`, a source of the same spec, holds
  // its records elsewhere now.
  void refuse_other_records(const Source& then) const;

 private:
  struct Slot {  // a shard that is opened when it is reached
    std::mutex mutex;
    std::shared_ptr<ProgressiveIndex> shard;
  };
  void plan(std::shared_ptr<const ShardSet> shards);
  std::shared_ptr<ProgressiveIndex> reach(std::size_t shard) const;
  Records read_stretch(const IndexedShard& shard, const ProgressiveIndex::Stretch& stretch,
                       std::int64_t first_record, const Progression& wanted) const;

  Records::Place place() const {
    return spec_.zero_copy ? Records::Place::mapped : Records::Place::copied;
  }

  SourceSpec spec_;
  std::vector<FileFacts> facts_;            // when it was opened; of a missing file, all zeros
  std::vector<std::int64_t> first_blocks_;  // of each shard, and the block count at the end
  std::unique_ptr<Slot[]> slots_;           // of a source that is not planned
  std::shared_ptr<const Reader> reader_;    // of a planned one
};

// A batch that has to be full is nothing without the records that an error took: throws
// KernelFailure if the sequence has only such, and there is an error ("" for none).
void fail_full_batch(const Sequence& sequence, std::string_view error);

}  // namespace tfrfast::tensorflow
