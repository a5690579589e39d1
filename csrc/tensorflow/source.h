// Reads shards for the ops.
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

// The size of a shard's blocks. A record belongs to the block in which its frame begins, so finding
// a block's records needs no table.
inline constexpr std::uint64_t kBlockBytes = 1 << 20;
// The size of a compressed shard's blocks, in bytes of the file. A block has the records of the
// spans that begin in it: usually none, otherwise one span of about 1 MiB.
inline constexpr std::uint64_t kCompressedBlockBytes = 256 << 10;
// A file with more blocks than this gets larger blocks, by a power of two. So even a huge sparse
// file is read to its end.
inline constexpr std::uint64_t kMaxBlocks = 1 << 15;

// The options for opening shards, with the user's compression even if the files look otherwise.
// Damage is reported when its turn comes.
ShardSetOptions shard_options(const SourceSpec& spec);
// The records of a planned source. Throws Error.
std::shared_ptr<const RecordSource> open_records(const SourceSpec& spec,
                                                 const OpeningProgress& progress = nullptr);

// Whether TensorFlow treats the damage as the end of the shard: a tail shorter than a header.
bool is_clean_end(const Damage& damage) noexcept;

// Every stride-th shard of a source, from `first` on.
struct Files {
  std::int64_t first = 0;
  std::int64_t stride = 1;
  bool operator==(const Files&) const = default;
};
Files files_of(std::span<const std::int64_t> numbers);  // throws Error(invalid)

// Steps [begin, end) of some files, in an order that `seed` determines: batches of a plan, or
// blocks.
struct Steps {
  std::uint64_t seed = 0;
  Files files;
  std::int64_t begin = 0;
  std::int64_t end = 0;

  // The number-th step. Empty if there are fewer.
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
  // A planned source, as a shuffle needs, opens all shards, and throws Error if the data differ
  // from the spec. Any other source is read in file order, and opens a shard when reading reaches
  // it.
  explicit Source(SourceSpec spec);
  // A planned source over open records.
  Source(SourceSpec spec, std::shared_ptr<const RecordSource> records);

  // Whether any shard is remote. All bytes of a remote shard are of the opened version, so
  // occasional looks are unnecessary.
  bool is_remote() const noexcept { return is_remote_; }
  // Withdraws the announcements of an iteration that has ended, in file order.
  void begin_again() const noexcept;
  // An iteration over a source without a plan holds the result. When nothing holds it any more,
  // unread announcements are withdrawn. Null if nothing is announced.
  static std::shared_ptr<const void> use(const std::shared_ptr<const Source>& source);

  const SourceSpec& spec() const noexcept { return spec_; }
  std::size_t shard_count() const noexcept { return spec_.shards.size(); }
  std::int64_t block_count(std::size_t shard) const noexcept { return block_counts_[shard]; }
  std::uint64_t file_bytes(std::size_t shard) const noexcept { return facts_[shard].bytes; }

  // Reads rows of this source. The result holds the errors.
  Records read(std::span<const Row> rows) const;
  ReadOptions read_options() const { return {spec_.verify, spec_.skip_damage}; }
  // Announces rows that are read now, if they are remote or recent rows were not in memory. Rows
  // that other callers have announced come first. Hold the result while reading.
  Announcements announce(std::span<const Row> rows) const noexcept;

  // The next functions are for planned sources only.
  Records read(std::span<const std::int64_t> records) const;
  Announcements announce(std::span<const std::int64_t> records) const;
  // The places of the source's iterations.
  Places& places() const noexcept { return *places_; }
  const std::shared_ptr<const RecordSource>& records() const noexcept { return records_; }
  const Reader& frames() const;  // throws Error invalid if its records are no frames
  const ShardSet& shard_set() const noexcept { return records_->shards(); }

  // The functions below are for sources without a plan. Records are numbered within their shard.
  //
  // Adds the `wanted` records of blocks [begin, end) of a shard to `found`, with the errors among
  // them. Announces the next bytes of a remote storage: the more bytes earlier shards had, the
  // more. Returns how many bytes of the next shards should be announced, too.
  // While another thread walks through a compressed shard, walks through shard `next`, if any.
  std::uint64_t find(std::size_t shard, std::int64_t begin, std::int64_t end,
                     const Progression& wanted, std::uint64_t bytes_before,
                     std::optional<std::size_t> next, Found& found) const;
  // Announces the first bytes of a shard, as far as the `wanted` records need them. Returns how
  // many bytes of the next shards should be announced. May open the shard. Never fails.
  std::uint64_t announce_beginning(std::size_t shard, const Progression& wanted,
                                   std::uint64_t bytes) const noexcept;
  // The turn of a shard has come: from now on its errors are reported.
  void begin(std::size_t shard) const noexcept { lazy_shards_[shard].is_begun = true; }
  // Walks through the shard unless its records were counted before. If the shard cannot be opened,
  // returns 0 after its turn has come, and throws Error before.
  std::int64_t record_count(std::size_t shard) const;
  // The index of a shard, if known without a walk. Null if the shard cannot be opened.
  std::shared_ptr<const ShardIndex> index_at_hand(std::size_t shard) const;
  // The block of a shard in which a record begins, according to `index`.
  std::int64_t block_of(std::size_t shard, const ShardIndex& index, std::uint64_t number) const;
  // The shard of a row that this source found.
  std::size_t shard_of(const Row& row) const noexcept {
    return static_cast<std::size_t>(row.shard - lazy_files_.get());
  }
  // Returns a shard for reading records up to byte `end` of its stream, found here or by another
  // process. Throws Error, invalid if the shard does not exist.
  const IndexedShard& file(std::size_t shard, std::uint64_t end) const;

  // Whether no file has changed since the construction.
  bool still_fits() const;
  // Throws Error stale_index if the records of a file have moved since `then`, a source of the same
  // spec.
  void refuse_other_records(const Source& then) const;

 private:
  struct ReachedShard {  // a shard that is opened when reading reaches it
    std::atomic<bool> is_begun = false;
    std::mutex mutex;
    std::shared_ptr<ProgressiveIndex> shard;
    // Of a remote shard. The mutex is never held during a wait.
    std::mutex announced_mutex;
    std::map<std::uint64_t, std::uint64_t> announced_ranges;  // ends by begins
    Announcements announced;
  };
  struct Use;
  // Each index folder is read once, for all shards.
  const std::shared_ptr<IndexFolders> index_folders_ = std::make_shared<IndexFolders>();
  void plan(std::shared_ptr<const RecordSource> records);
  std::shared_ptr<ProgressiveIndex> reach(std::size_t shard) const;
  void walk_ahead(const ProgressiveIndex& here, std::size_t next) const noexcept;
  void announce_bytes(std::size_t shard, std::uint64_t begin, std::uint64_t end) const noexcept;
  std::uint64_t announce_wanted(std::size_t shard, const ShardIndex& index,
                                const Progression& wanted, std::uint64_t begin,
                                std::uint64_t end) const noexcept;

  Records::Place place() const {
    return spec_.zero_copy ? Records::Place::mapped : Records::Place::copied;
  }

  SourceSpec spec_;
  bool is_remote_ = false;
  std::vector<FileFacts> facts_;            // of each shard at opening; all zeros if missing
  std::vector<std::int64_t> block_counts_;  // by shard
  // Of a source without a plan. A file is set when reading reaches its shard.
  std::unique_ptr<ReachedShard[]> lazy_shards_;
  std::unique_ptr<IndexedShard[]> lazy_files_;
  mutable std::mutex use_mutex_;  // guards use_
  mutable std::weak_ptr<const Use> use_;
  std::shared_ptr<const RecordSource> records_;  // of a planned source
  std::shared_ptr<Places> places_;               // of a planned source
  mutable std::optional<ReadAhead> read_ahead_;  // set once
};

}  // namespace tfrfast::tensorflow
