#include "core/index/shard_set.h"

#include <atomic>
#include <chrono>
#include <exception>
#include <limits>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>

#include "core/base/error.h"
#include "core/base/hashing.h"
#include "core/base/memory.h"
#include "core/base/parallel.h"
#include "core/index/damage_in_words.h"
#include "core/index/folder_writing.h"
#include "core/index/index_cache.h"
#include "core/index/lazy_search.h"
#include "core/storage/local/sidecar.h"
#include "core/storage/storage.h"

namespace tfrfast {
namespace {

constexpr std::uint64_t kMaxRecords = std::numeric_limits<std::int64_t>::max();
constexpr auto kBetweenReports = std::chrono::milliseconds(100);

// Adds up the bytes that all threads have walked. Calls `report` on the opening thread only.
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

// Ends the work of all threads if the caller's progress callback throws.
class Interruption {
  struct Interrupted {};

 public:
  // `action` may throw on the opening thread. The next call of every other thread throws, too.
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

// A thread that waits for a round trip costs no processor time, so remote shards get more threads.
template <class PathOf>
unsigned threads_to_open(const std::vector<std::size_t>& numbers, const PathOf& path_of,
                         unsigned threads) {
  for (const std::size_t number : numbers) {
    const StorageTraits& traits = storage_of(path_of(number)).traits;
    if (traits.is_remote) threads = std::max(threads, traits.requests_at_once);
  }
  return threads;
}

// Says which shards to open now. The other shards are opened later, from `folders`.
struct Examined {
  std::unique_ptr<LazyFolders> folders;
  std::vector<std::size_t> to_open;
  // Does not count remote shards. Their sizes are unknown until they are open.
  std::uint64_t bytes_to_open = 0;
};

// Calls set_lazy(number, lazy) for each shard that can be opened later. Throws Error for the first
// missing shard.
template <class PathOf, class SetLazy>
Examined examine(std::size_t count, const PathOf& path_of, const IndexOptions& index,
                 const ShardSetOptions& options, const SetLazy& set_lazy) {
  constexpr std::size_t kPiece = 1024;
  Examined examined{std::make_unique<LazyFolders>(index, options.io), {}, 0};
  const bool may_be_lazy = count > options.max_opened_at_once;
  std::vector<Examined> pieces((count + kPiece - 1) / kPiece);
  parallel_for(pieces.size(), options.threads, [&](std::size_t piece) {
    LazySearch search(*examined.folders);
    const std::size_t end = std::min(count, (piece + 1) * kPiece);
    for (std::size_t number = piece * kPiece; number < end; ++number) {
      const std::string& path = path_of(number);
      LazyShard lazy;
      if (is_local(path)) {
        const std::uint64_t bytes = search.look_at(path, may_be_lazy ? &lazy : nullptr);
        if (lazy.entry != nullptr) {
          set_lazy(number, lazy);
          continue;
        }
        pieces[piece].bytes_to_open = add_or_max(pieces[piece].bytes_to_open, bytes);
      } else if (may_be_lazy) {
        search.look_at_listed(path, &lazy);
        if (lazy.entry != nullptr) {
          set_lazy(number, lazy);
          continue;
        }
      }
      pieces[piece].to_open.push_back(number);
    }
  });
  for (const Examined& piece : pieces) {
    examined.bytes_to_open = add_or_max(examined.bytes_to_open, piece.bytes_to_open);
    examined.to_open.insert(examined.to_open.end(), piece.to_open.begin(), piece.to_open.end());
  }
  return examined;
}

std::uint64_t fingerprint_of(const std::vector<const ShardSlot*>& slots) {
  Fnv1a hash;
  for (const ShardSlot* const slot : slots) {
    const std::string name = slot->name();
    const std::uint64_t numbers[2] = {slot->file_bytes(), slot->record_count()};
    hash.add(name.c_str(), name.size() + 1);
    hash.add(numbers, sizeof numbers);
  }
  return hash.value();
}

// Numbers the distinct paths. Returns the number of each path, and sets `first` to the place of
// each distinct path's first mention.
std::vector<std::uint32_t> number_distinct(const std::vector<std::string>& paths,
                                           std::vector<std::uint32_t>* first) {
  std::vector<std::uint32_t> numbers;
  numbers.reserve(paths.size());
  std::unordered_map<std::string_view, std::uint32_t> number_of;
  number_of.reserve(paths.size());
  for (const std::string& path : paths) {
    const auto next = static_cast<std::uint32_t>(first->size());
    const auto [entry, is_new] = number_of.emplace(path, next);
    if (is_new) first->push_back(static_cast<std::uint32_t>(numbers.size()));
    numbers.push_back(entry->second);
  }
  return numbers;
}

// Distinct shards. Also owns the folders of the shards that are opened later.
struct KeptShards {
  explicit KeptShards(std::size_t count) : slots(std::make_unique<ShardSlot[]>(count)) {}
  std::unique_ptr<LazyFolders> folders;
  std::unique_ptr<ShardSlot[]> slots;
};

}  // namespace

ShardSet::ShardSet(std::vector<IndexedShard> shards, ShardSetOptions options)
    : options_(std::move(options)) {
  const auto made = std::make_shared<KeptShards>(shards.size());
  for (std::size_t i = 0; i < shards.size(); ++i) {
    made->slots[i].set(std::move(shards[i]));
    slots_.push_back(&made->slots[i]);
  }
  kept_.push_back(made);
  number_records();
}

ShardSet::ShardSet(std::vector<const ShardSlot*> slots, Kept kept, ShardSetOptions options)
    : options_(std::move(options)), kept_(std::move(kept)), slots_(std::move(slots)) {
  number_records();
}

void ShardSet::number_records() {
  opened_ = std::make_unique<std::atomic<const IndexedShard*>[]>(slots_.size());
  first_records_.reserve(slots_.size() + 1);
  first_records_.push_back(0);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const ShardSlot& slot = *slots_[i];
    opened_[i].store(slot.opened(), std::memory_order_relaxed);
    const std::uint64_t count = slot.record_count();
    if (count > kMaxRecords - first_records_.back()) {
      throw Error(ErrorKind::invalid,
                  "'" + slot.path() + "' has " + std::to_string(count) +
                      " records, and the shards before it " +
                      std::to_string(first_records_.back()) +
                      ": together that is more than can be numbered.",
                  {slot.path(), {}, {}});
    }
    first_records_.push_back(first_records_.back() + count);
  }
  if (slots_.empty()) first_records_.push_back(0);  // so that place() may look at a first shard
  fingerprint_ = fingerprint_of(slots_);
  source_starts_ = std::make_shared<const std::vector<std::int64_t>>(1, 0);
}

void ShardSet::refuse_unless_believed(const StoredFile& file, const std::string& what,
                                      const std::string& advice) const {
  const Writers& writers = file.facts().writers;
  for (const ShardSlot* const slot : slots_) {
    const Writers& of_shard = slot->file_facts().writers;
    if (may_be_believed(writers, of_shard)) continue;
    throw Error(ErrorKind::stale_index,
                what + " '" + file.path() + "' is not used: " +
                    why_not_believed(writers, slot->path(), of_shard) + ". " + advice,
                {file.path(), {}, {}});
  }
}

void ShardSet::open_remote(std::span<const std::size_t> shards) const {
  const unsigned at_once = storage_of(slots_[shards.front()]->path()).traits.requests_at_once;
  parallel_for(shards.size(), at_once, [&](std::size_t i) { open_lazy(shards[i]); });
}

const IndexedShard& ShardSet::open_lazy(std::size_t shard) const {
  const IndexedShard& opened = slots_[shard]->open();
  opened_[shard].store(&opened, std::memory_order_release);
  return opened;
}

std::shared_ptr<const ShardSet> ShardSet::joined(
    const std::vector<std::shared_ptr<const ShardSet>>& sets) {
  if (sets.empty()) throw Error(ErrorKind::invalid, "There are no sets of shards to join.");
  std::vector<const ShardSlot*> slots;
  Kept kept;
  std::vector<std::int64_t> starts;
  std::uint64_t records = 0;
  for (const auto& set : sets) {
    starts.push_back(static_cast<std::int64_t>(std::min(records, kMaxRecords)));
    records = add_or_max(records, set->record_count());
    slots.insert(slots.end(), set->slots_.begin(), set->slots_.end());
    kept.insert(kept.end(), set->kept_.begin(), set->kept_.end());
  }
  // Not std::make_shared: the constructor is private.
  std::shared_ptr<ShardSet> all(
      new ShardSet(std::move(slots), std::move(kept), sets[0]->options()));
  all->source_starts_ = std::make_shared<const std::vector<std::int64_t>>(std::move(starts));
  return all;
}

std::shared_ptr<const ShardSet> ShardSet::open(const std::vector<std::string>& paths,
                                               const ShardSetOptions& options,
                                               const OpeningProgress& progress) {
  std::vector<std::uint32_t> first_mentions;
  const std::vector<std::uint32_t> numbers = number_distinct(paths, &first_mentions);
  const auto path_of = [&](std::size_t number) -> const std::string& {
    return paths[first_mentions[number]];
  };
  const auto shards = std::make_shared<KeptShards>(first_mentions.size());
  IndexOptions index = options.index;
  if (!options.skip_damage) index.at_damage = AtDamage::stop;
  if (index.folders == nullptr) index.folders = std::make_shared<IndexFolders>();
  Examined examined = examine(
      first_mentions.size(), path_of, index, options,
      [&](std::size_t number, LazyShard& lazy) { shards->slots[number].set(std::move(lazy)); });
  shards->folders = std::move(examined.folders);
  const std::vector<std::size_t>& to_open = examined.to_open;

  std::unique_ptr<ProgressMeter> meter;
  WalkProgress walked;
  std::function<void()> while_waiting;
  Interruption interruption;
  if (progress) {
    meter = std::make_unique<ProgressMeter>(progress, examined.bytes_to_open);
    walked = [&](std::uint64_t bytes) { interruption.pass_on([&] { meter->add(bytes); }); };
    while_waiting = [&] { interruption.pass_on([&] { meter->report(); }); };
  }

  std::atomic<bool> built_any{false};
  try {
    parallel_for(
        to_open.size(), threads_to_open(to_open, path_of, options.threads),
        [&](std::size_t i) {
          const auto file =
              StoredFile::open(path_of(to_open[i]), options.io, options.index.storage);
          if (meter != nullptr && file->traits().is_remote) meter->expect_more(file->bytes());
          IndexedShard shard = open_indexed(file, index, walked);
          if (shard.was_built) built_any = true;
          if (!options.skip_damage && !shard.index->damage().empty()) {
            throw_damage(shard, shard.index->damage().front());
          }
          shards->slots[to_open[i]].set(std::move(shard));
        },
        while_waiting);
  } catch (...) {
    interruption.rethrow_if_any();  // takes precedence over a shard's error
    throw;
  }
  if (meter) meter->finish();
  if (built_any && options.index.use != IndexUse::memory) {
    prune_index_cache(index_cache_limit_bytes(), FreshIndexes::keep);
  }
  if (built_any && !options.index.folder.empty()) {
    try_to_compact_index(options.index.folder);
  }

  std::vector<const ShardSlot*> slots;
  slots.reserve(paths.size());
  for (const std::uint32_t number : numbers) slots.push_back(&shards->slots[number]);
  return std::shared_ptr<const ShardSet>(new ShardSet(std::move(slots), {shards}, options));
}

}  // namespace tfrfast
