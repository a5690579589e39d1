#include "core/index/shard_set.h"

#include <atomic>
#include <chrono>
#include <exception>
#include <limits>
#include <thread>
#include <unordered_map>
#include <utility>

#include "core/base/error.h"
#include "core/base/hashing.h"
#include "core/base/memory.h"
#include "core/base/parallel.h"
#include "core/index/damage_in_words.h"
#include "core/index/folder_merge.h"
#include "core/index/index_cache.h"
#include "core/storage/folders.h"
#include "core/storage/storage.h"

namespace tfrfast {
namespace {

constexpr std::uint64_t kMaxRecords = std::numeric_limits<std::int64_t>::max();
constexpr auto kBetweenReports = std::chrono::milliseconds(100);

// Collects the progress of all scanning threads and reports it on the one that opens.
class ProgressMeter {
 public:
  ProgressMeter(const OpeningProgress& report, std::uint64_t all_bytes)
      : report_(report), all_bytes_(all_bytes) {}

  void expect_more(std::uint64_t bytes) { all_bytes_.fetch_add(bytes, std::memory_order_relaxed); }

  void add(std::uint64_t bytes) {
    done_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    if (std::this_thread::get_id() == reporting_thread_) report();
  }

  void report() {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_report_ < kBetweenReports) return;
    last_report_ = now;
    report_(done_bytes_.load(std::memory_order_relaxed), all_bytes_);
  }

  void finish() { report_(all_bytes_, all_bytes_); }

 private:
  const OpeningProgress& report_;
  std::atomic<std::uint64_t> all_bytes_;
  const std::thread::id reporting_thread_ = std::this_thread::get_id();
  std::chrono::steady_clock::time_point last_report_ = std::chrono::steady_clock::now();
  std::atomic<std::uint64_t> done_bytes_{0};
};

// What the caller's progress throws ends the work of all threads at once.
class Interruption {
  struct Interrupted {};

 public:
  // On the thread that opens, `action` may throw. The other threads notice at their next call.
  template <class Action>
  void pass_on(const Action& action) {
    if (interrupted_.load(std::memory_order_acquire)) throw Interrupted();
    try {
      action();
    } catch (...) {
      thrown_ = std::current_exception();
      interrupted_.store(true, std::memory_order_release);
      throw Interrupted();
    }
  }
  void rethrow_if_any() {
    if (auto thrown = std::exchange(thrown_, nullptr)) std::rethrow_exception(std::move(thrown));
  }

 private:
  std::atomic<bool> interrupted_{false};
  std::exception_ptr thrown_;
};

// Where each request waits for a round trip, more threads cost no processor time.
unsigned threads_to_open(const std::vector<std::string>& paths, unsigned threads) {
  for (const std::string& path : paths) {
    const StorageTraits& traits = storage_of(path).traits;
    if (traits.is_far) threads = std::max(threads, traits.requests_at_once);
  }
  return threads;
}

std::uint64_t fingerprint_of(const std::vector<IndexedShard>& shards) {
  Fnv1a hash;
  for (const IndexedShard& shard : shards) {
    const std::string name = name_of(shard.file->path());
    const std::uint64_t numbers[2] = {shard.index->facts().file_bytes, shard.index->record_count()};
    hash.add(name.c_str(), name.size() + 1);
    hash.add(numbers, sizeof numbers);
  }
  return hash.value();
}

}  // namespace

ShardSet::ShardSet(std::vector<IndexedShard> shards, ShardSetOptions options)
    : options_(std::move(options)), shards_(std::move(shards)) {
  first_records_.reserve(shards_.size() + 1);
  first_records_.push_back(0);
  for (const IndexedShard& shard : shards_) {
    const std::uint64_t count = shard.index->record_count();
    if (count > kMaxRecords - first_records_.back()) {
      throw Error(ErrorKind::invalid,
                  "'" + shard.file->path() + "' has " + std::to_string(count) +
                      " records, and the shards before it " +
                      std::to_string(first_records_.back()) +
                      ": together that is more than can be numbered.",
                  {shard.file->path(), {}, {}});
    }
    first_records_.push_back(first_records_.back() + count);
  }
  if (shards_.empty()) first_records_.push_back(0);  // so that place() may look at a first shard
  fingerprint_ = fingerprint_of(shards_);
  source_starts_ = std::make_shared<const std::vector<std::int64_t>>(1, 0);
}

std::shared_ptr<const ShardSet> ShardSet::joined(
    const std::vector<std::shared_ptr<const ShardSet>>& sets) {
  if (sets.empty()) throw Error(ErrorKind::invalid, "There are no sets of shards to join.");
  std::vector<IndexedShard> shards;
  std::vector<std::int64_t> starts;
  std::uint64_t records = 0;
  for (const auto& set : sets) {
    starts.push_back(static_cast<std::int64_t>(std::min(records, kMaxRecords)));
    records = add_or_max(records, set->record_count());
    for (std::size_t shard = 0; shard < set->size(); ++shard) shards.push_back((*set)[shard]);
  }
  const auto all = std::make_shared<ShardSet>(std::move(shards), sets[0]->options());
  all->source_starts_ = std::make_shared<const std::vector<std::int64_t>>(std::move(starts));
  return all;
}

std::shared_ptr<const ShardSet> ShardSet::open(const std::vector<std::string>& paths,
                                               const ShardSetOptions& options,
                                               const OpeningProgress& progress) {
  std::vector<std::string> distinct;
  std::unordered_map<std::string, std::size_t> number_of;
  for (const std::string& path : paths) {
    if (number_of.emplace(path, distinct.size()).second) distinct.push_back(path);
  }

  std::unique_ptr<ProgressMeter> meter;
  ScanProgress scanned;
  std::function<void()> while_waiting;
  Interruption interruption;
  if (progress) {
    std::uint64_t all_bytes = 0;
    for (const std::string& path : distinct) {
      // Of a far one it is known once it is open.
      if (!storage_of(path).traits.is_far) {
        all_bytes = add_or_max(all_bytes, examine_file(path).bytes);
      }
    }
    meter = std::make_unique<ProgressMeter>(progress, all_bytes);
    scanned = [&](std::uint64_t bytes) { interruption.pass_on([&] { meter->add(bytes); }); };
    while_waiting = [&] { interruption.pass_on([&] { meter->report(); }); };
  }

  IndexOptions index = options.index;
  if (!options.skip_damage) index.at_damage = AtDamage::stop;
  if (index.folders == nullptr) index.folders = std::make_shared<IndexFolders>();
  std::vector<IndexedShard> opened(distinct.size());
  std::atomic<bool> built_any{false};
  try {
    parallel_for(
        distinct.size(), threads_to_open(distinct, options.threads),
        [&](std::size_t number) {
          const auto file = StoredFile::open(distinct[number], options.io, options.index.access);
          if (meter != nullptr && file->traits().is_far) meter->expect_more(file->bytes());
          IndexedShard shard = open_indexed(file, index, scanned);
          if (shard.was_built) built_any = true;
          if (!options.skip_damage && !shard.index->damage().empty()) {
            throw_damage(shard, shard.index->damage().front());
          }
          opened[number] = std::move(shard);
        },
        while_waiting);
  } catch (...) {
    interruption.rethrow_if_any();  // rather than the error of a shard
    throw;
  }
  if (meter) meter->finish();
  if (built_any && options.index.use == IndexUse::automatic && options.index.folder.empty()) {
    prune_index_cache(index_cache_limit_bytes(), FreshIndexes::keep);
  }
  if (built_any && !options.index.folder.empty()) {
    collect_loose_indexes(options.index.folder, Merge::now);
  }

  std::vector<IndexedShard> shards;
  shards.reserve(paths.size());
  for (const std::string& path : paths) shards.push_back(opened[number_of[path]]);
  return std::make_shared<const ShardSet>(std::move(shards), options);
}

}  // namespace tfrfast
