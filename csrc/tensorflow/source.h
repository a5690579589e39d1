// Reads shards for the ops. All readers of the same data in this process share one source.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/index/walked_shard.h"
#include "core/order/progression.h"
#include "core/read/reader.h"
#include "core/read/source_spec.h"

namespace tfrfast::tensorflow {

// The options for opening shards, with the user's compression even if the files look otherwise.
// Damage is reported when its turn comes.
ShardSetOptions shard_options(const SourceSpec& spec);
// The records of a planned source. Throws Error.
std::shared_ptr<const RecordSource> open_records(const SourceSpec& spec,
                                                 const OpeningProgress& progress = nullptr);

// Prints the core's warnings since the last call to stderr: a graph has no place for warnings.
void print_warnings();

// Whether TensorFlow treats the damage as the end of the shard: a tail shorter than a header.
bool is_clean_end(const Damage& damage) noexcept;

// Every stride-th shard of a source, from `first` on.
struct Files {
  std::int64_t first = 0;
  std::int64_t stride = 1;
  bool operator==(const Files&) const = default;
};
Files files_of(std::span<const std::int64_t> numbers);  // throws Error(invalid)

// What the steps of loader.to_tf_dataset() add up to, as in LoaderCounters.
struct LoadCounts {
  std::atomic<std::uint64_t> records{0};
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint64_t> batches{0};
};

// Safe from many threads.
class Source {
 public:
  // A planned source, as a shuffle needs, opens all shards, and throws Error if the data differ
  // from the spec. Any other source is read in file order, and opens a shard when reading reaches
  // it.
  explicit Source(SourceSpec spec);
  // A planned source over open records.
  Source(SourceSpec spec, std::shared_ptr<const RecordSource> records);

  bool is_remote() const noexcept { return is_remote_; }  // whether any shard is

  const SourceSpec& spec() const noexcept { return spec_; }
  std::size_t shard_count() const noexcept { return spec_.shards.size(); }

  ReadOptions read_options() const { return {spec_.verify, spec_.skip_damage}; }
  // Announces rows that are read now, if they are remote or recent rows were not in memory. Rows
  // that other callers have announced come first. Hold the result while reading.
  Announcements announce(std::span<const Row> rows) const noexcept;

  // The next functions are for planned sources only.
  Announcements announce(std::span<const std::int64_t> records, std::uint64_t epoch) const;
  const std::shared_ptr<const RecordSource>& records() const noexcept { return records_; }
  const ShardSet& shard_set() const noexcept { return records_->shards(); }

  // The counts of all steps of an encoded Plan. Live as long as the source.
  LoadCounts& counts_of(std::string_view plan) const;

  // The functions below are for sources without a plan.
  //
  // A file of a shard, which is opened when reading reaches it.
  struct OpenShard {
    OpenShard(const std::string& path, IoMode io, const IndexOptions& options);

    WalkedShard walked;
    IndexedShard file;     // for reading
    std::int64_t version;  // differs between files, and between a file before and after a change
    // If the file is remote. The mutex is never held during a wait.
    std::mutex announced_mutex;
    std::map<std::uint64_t, std::uint64_t> announced_ranges;  // ends by begins
    Announcements announced;

    // Announces bytes [begin, end), if the file is remote. Each byte is announced once per
    // iteration. Never fails.
    void announce(std::uint64_t begin, std::uint64_t end) noexcept;
    void withdraw() noexcept;
  };
  // Opens the shard's present file, or returns an open one. Throws Error: invalid if the shard does
  // not exist; stale_index if no file with this `version` is open, unless that is 0.
  std::shared_ptr<OpenShard> open(std::size_t shard, std::int64_t version = 0) const;
  // An iteration begins: looks whether files have changed. Iterations that have opened the earlier
  // file of a shard go on with that file, until the shard changes once more.
  void begin() const;
  // Withdraws the announcements of iterations that have ended.
  void withdraw() const noexcept;

  // Whether no file of a planned source has changed since it was opened.
  bool still_fits() const;
  // Throws Error stale_index if the records of a file have moved since `then`, a source of the same
  // spec.
  void refuse_other_records(const Source& then) const;

 private:
  struct WatchedShard {
    std::mutex opening;  // held while a file is opened, which may wait for a network
    // Guards the members below. Locked after `opening`, and never held during a wait.
    std::mutex mutex;
    std::shared_ptr<OpenShard> now;     // null: not opened, or changed since
    std::shared_ptr<OpenShard> before;  // the file before the last change
  };
  void plan(std::shared_ptr<const RecordSource> records);

  SourceSpec spec_;
  bool is_remote_ = false;
  std::vector<FileFacts> facts_;                 // of each shard of a planned source, at opening
  std::unique_ptr<WatchedShard[]> lazy_shards_;  // of a source without a plan
  // Each index folder is read once in an iteration, for all shards.
  mutable std::mutex index_folders_mutex_;
  mutable std::shared_ptr<IndexFolders> index_folders_ = std::make_shared<IndexFolders>();
  std::shared_ptr<const RecordSource> records_;  // of a planned source
  mutable std::mutex counts_mutex_;
  mutable std::map<std::string, LoadCounts, std::less<>> counts_;  // by the head of a plan
  mutable std::optional<ReadAhead> read_ahead_;                    // set once
};

// Opens a source, or returns the open source. A source stays open as long as it is held. Several
// editions of a planned source are open while iterations read files that have been replaced since.
// Throws Error. Safe from many threads.
std::shared_ptr<const Source> open_source(std::string_view text, std::int64_t edition = 0);

struct Begun {
  std::shared_ptr<const Source> source;
  std::int64_t edition = 0;
};
// The same for an iteration that begins: looks whether files have changed. A planned source of
// changed files is opened as another edition, and judged by their present contents, so touching a
// file changes nothing. But under a plan no record may move: throws Error stale_index.
Begun begin_source(std::string_view text);
// Like open_source(), for a planned source whose records are open already. If files of the open
// source have changed, its readers keep it, and the result is another edition.
std::shared_ptr<const Source> adopt_source(SourceSpec spec,
                                           const std::shared_ptr<const RecordSource>& records);

}  // namespace tfrfast::tensorflow
