// Shards as the ops read them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
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
// A file that would have more blocks than this gets larger ones, by a power of two. So even a huge
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

// Steps [begin, end) of some files, in an order that `seed` chooses: batches of a plan, or blocks.
struct Steps {
  std::uint64_t seed = 0;
  Files files;
  std::int64_t begin = 0;
  std::int64_t end = 0;

  // The number-th step; none if there are fewer.
  std::optional<std::int64_t> at(std::int64_t number) const noexcept {
    if (number < 0 || number >= end - begin) return std::nullopt;
    return begin + number;
  }
};
Steps steps_of(std::span<const std::int64_t> numbers);  // throws Error(invalid)

class Places;

// Safe from many threads.
class Source {
 public:
  // A planned source, which a shuffle needs, opens everything, and throws Error if that is not the
  // data that the spec describes. Any other is read in file order, and opens shards when they are
  // reached.
  explicit Source(SourceSpec spec);
  // A planned source over shards that are open already.
  Source(SourceSpec spec, std::shared_ptr<const ShardSet> shards);

  // Whether any shard is remote. Whatever is read of such a shard is of the version that was
  // opened, so there is no need to look from time to time.
  bool is_remote() const noexcept { return is_remote_; }
  // What was announced in file order, for an iteration that has ended, is not wanted any more.
  void begin_again() const noexcept;
  // Whoever iterates over a source without a plan holds this. When nobody does any more, what was
  // announced and not read is not wanted. Null where nothing is announced.
  static std::shared_ptr<const void> use(const std::shared_ptr<const Source>& source);

  const SourceSpec& spec() const noexcept { return spec_; }
  std::size_t shard_count() const noexcept { return spec_.shards.size(); }
  std::int64_t block_count(std::size_t shard) const noexcept { return block_counts_[shard]; }
  std::uint64_t file_bytes(std::size_t shard) const noexcept { return facts_[shard].bytes; }

  // Reads rows of this source. Errors are in the result.
  Records read(std::span<const Row> rows) const;
  ReadOptions read_options() const { return {spec_.verify, spec_.skip_damage}; }
  // Tells the storage that these are read now, if they are remote or were lately not in memory.
  // What others have announced of them comes before all else. Hold it while they are read.
  Announcements announce(std::span<const Row> rows) const noexcept;

  Records read(std::span<const std::int64_t> records) const;  // planned sources only
  // Where its iterations are.
  Places& places() const noexcept { return *places_; }
  const std::shared_ptr<const Reader>& reader() const noexcept { return reader_; }
  const ShardSet& shard_set() const noexcept { return reader_->shards(); }

  // Sources without a plan only, from here on. Records are numbered within their shard.
  //
  // Adds the `wanted` records of blocks [begin, end) of a shard to `found`, and the errors there.
  // Asks a remote storage for what comes next: the more, the more bytes the shards before it had.
  // Returns how many bytes of the shards after it should be asked for, too.
  std::uint64_t find(std::size_t shard, std::int64_t begin, std::int64_t end,
                     const Progression& wanted, std::uint64_t bytes_before, Found& found) const;
  // Asks for the first bytes of a shard, as far as the `wanted` records need them. Returns how many
  // bytes of the shards after it should be asked for. May open the shard; never fails.
  std::uint64_t announce_beginning(std::size_t shard, const Progression& wanted,
                                   std::uint64_t bytes) const noexcept;
  // The turn of a shard has come: what is wrong with it will be told.
  void begin(std::size_t shard) const noexcept { lazy_shards_[shard].is_begun = true; }
  // Walks through the shard if its records have not been counted. 0 for one that cannot be opened,
  // once its turn has come; before, throws Error.
  std::int64_t record_count(std::size_t shard) const;
  // The index of a shard, if there is one without a walk; null for one that cannot be opened.
  std::shared_ptr<const ShardIndex> index_at_hand(std::size_t shard) const;
  // The block of a shard that a record begins in, by that index.
  std::int64_t block_of(std::size_t shard, const ShardIndex& index, std::uint64_t number) const;
  // The shard of a row that was found here.
  std::size_t shard_of(const Row& row) const noexcept {
    return static_cast<std::size_t>(row.shard - lazy_files_.get());
  }
  // A shard, to read what was found in it up to byte `end` of its stream, maybe by another process.
  // Throws Error, invalid if there is no such shard.
  const IndexedShard& file(std::size_t shard, std::uint64_t end) const;

  // Whether all files are what they were when this was made.
  bool still_fits() const;
  // Throws Error stale_index if a file that changed since `then`, a source of the same spec, holds
  // its records elsewhere now.
  void refuse_other_records(const Source& then) const;

 private:
  struct LazyShard {  // a shard that is opened when it is reached
    std::atomic<bool> is_begun = false;
    std::mutex mutex;
    std::shared_ptr<ProgressiveIndex> shard;
    // Of a remote one. Nobody waits with this mutex.
    std::mutex announced_mutex;
    std::map<std::uint64_t, std::uint64_t> announced_ranges;  // ends, by begins
    Announcements announced;
  };
  struct Use;
  // Each is looked into once, for all shards that are reached.
  const std::shared_ptr<IndexFolders> index_folders_ = std::make_shared<IndexFolders>();
  void plan(std::shared_ptr<const ShardSet> shards);
  std::shared_ptr<ProgressiveIndex> reach(std::size_t shard) const;
  void announce_bytes(std::size_t shard, std::uint64_t begin, std::uint64_t end) const noexcept;
  std::uint64_t announce_wanted(std::size_t shard, const ShardIndex& index,
                                const Progression& wanted, std::uint64_t begin,
                                std::uint64_t end) const noexcept;

  Records::Place place() const {
    return spec_.zero_copy ? Records::Place::mapped : Records::Place::copied;
  }

  SourceSpec spec_;
  bool is_remote_ = false;
  std::vector<FileFacts> facts_;  // of each shard when it was opened; all zeros if it was missing
  std::vector<std::int64_t> block_counts_;  // of each shard
  // For a source that is not planned. Files are set when their shards are reached.
  std::unique_ptr<LazyShard[]> lazy_shards_;
  std::unique_ptr<IndexedShard[]> lazy_files_;
  mutable std::mutex use_mutex_;  // guards the next one
  mutable std::weak_ptr<const Use> use_;
  std::shared_ptr<const Reader> reader_;  // of a planned one
  std::shared_ptr<Places> places_;        // of a planned one
};

}  // namespace tfrfast::tensorflow
