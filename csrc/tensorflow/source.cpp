#include "tensorflow/source.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string>
#include <unordered_map>

#include "core/base/encoding.h"
#include "core/base/hashing.h"
#include "core/base/parallel.h"
#include "core/base/warnings.h"
#include "core/read/joined_source.h"
#include "core/steps/step_spec.h"
#include "core/storage/storage.h"

namespace tfrfast::tensorflow {
namespace {

bool is_any_remote(const SourceSpec& spec) {
  return std::any_of(spec.shards.begin(), spec.shards.end(), [](const ShardSpec& shard) {
    return storage_of(shard.path).traits.is_remote;
  });
}

// The number of remote shards examined at the same time.
constexpr unsigned kLooksAtOnce = 32;

// Returns the present facts of each shard, all zeros if the shard cannot be found.
std::vector<FileFacts> facts_now(const SourceSpec& spec) {
  std::vector<FileFacts> facts(spec.shards.size());
  const auto examine = [&](std::size_t i) {
    try {
      facts[i] = examine_file(spec.shards[i].path, spec.storage);
    } catch (const Error&) {
      facts[i] = {};
    }
  };
  parallel_for(facts.size(), is_any_remote(spec) ? kLooksAtOnce : 1, examine);
  return facts;
}

[[noreturn]] void refuse_changed(const ShardSpec& then, const std::string& now) {
  throw Error(ErrorKind::stale_index,
              "'" + then.path + "' changed: when this dataset was made it had " +
                  std::to_string(then.file_bytes) + " bytes and " +
                  std::to_string(then.record_count) + " records, and now it has " + now +
                  ". Make the dataset again.",
              {then.path, {}, {}});
}

// Linking and renaming a local file change its version tag, but not its contents.
std::int64_t version_of(const StoredFile& file) noexcept {
  const FileFacts& facts = file.facts();
  Fnv1a hash;
  hash.add(&facts.bytes, sizeof facts.bytes);
  hash.add(&facts.mtime_ns, sizeof facts.mtime_ns);
  if (file.traits().is_remote) hash.add(&facts.version, sizeof facts.version);
  return static_cast<std::int64_t>(hash.value() >> 1 | 1);
}

struct SharedSource {
  std::mutex mutex;  // held while the source is opened
  std::weak_ptr<const Source> source;
};

class Registry {
 public:
  static Registry& instance() {
    static auto* const registry = new Registry;  // never destroyed: kernels may outlive statics
    return *registry;
  }

  // Returns the entry of an edition of this text, or makes one.
  std::shared_ptr<SharedSource> find(std::string_view text, std::int64_t edition) {
    std::string head(head_of(text));
    if (edition != 0) head.append(" ").append(std::to_string(edition));
    const std::lock_guard lock(mutex_);
    if (const auto at = entries_.find(head); at != entries_.end()) return at->second;
    std::erase_if(entries_, [](const auto& each) {
      // The holder of an entry is about to open the source.
      return each.second.use_count() == 1 && each.second->source.expired();
    });
    return entries_.emplace(std::move(head), std::make_shared<SharedSource>()).first->second;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<SharedSource>> entries_;
};

}  // namespace

void print_warnings() {
  for (const std::string& text : take_warnings()) {
    std::fprintf(stderr, "tfrfast: %s\n", text.c_str());
  }
}

bool is_clean_end(const Damage& damage) noexcept {
  return damage.kind == DamageKind::torn_header;
}

ShardSetOptions shard_options(const SourceSpec& spec) {
  ShardSetOptions options;
  options.io = spec.io;
  options.index.use = spec.index_use;
  options.index.folder = spec.index_folder;
  options.index.compression = spec.compression;
  options.index.storage = spec.storage;
  options.skip_damage = true;
  options.threads = usable_processors();
  return options;
}

std::shared_ptr<const RecordSource> open_records(const SourceSpec& spec,
                                                 const OpeningProgress& progress) {
  std::vector<PartSpec> parts = spec.parts;
  if (parts.empty()) parts.push_back({spec.shards.size(), {}});
  std::vector<std::shared_ptr<const RecordSource>> opened;
  auto shard = spec.shards.begin();
  for (const PartSpec& part : parts) {
    std::vector<std::string> paths;
    paths.reserve(static_cast<std::size_t>(part.shard_count));
    for (std::uint64_t i = 0; i < part.shard_count; ++i) paths.push_back((shard++)->path);
    auto frames =
        std::make_shared<const Reader>(ShardSet::open(paths, shard_options(spec), progress),
                                       ReadOptions{spec.verify, spec.skip_damage});
    if (part.steps.empty()) {
      opened.push_back(std::move(frames));
    } else {
      opened.push_back(StepSpec::decode(part.steps).open(std::move(frames)));
    }
  }
  if (opened.size() == 1) return opened.front();
  return std::make_shared<const JoinedSource>(std::move(opened));
}

Files files_of(std::span<const std::int64_t> numbers) {
  if (numbers.size() != 2 || numbers[0] < 0 || numbers[1] < 1) {
    throw Error(
        ErrorKind::invalid,
        "A dataset's files are given by a first file of 0 or more and a stride of 1 or more.");
  }
  return {numbers[0], numbers[1]};
}

Source::Source(SourceSpec spec) : spec_(std::move(spec)), is_remote_(is_any_remote(spec_)) {
  if (!spec_.planned) {
    lazy_shards_ = std::make_unique<WatchedShard[]>(spec_.shards.size());
    read_ahead_.emplace(1, false);  // counts bytes: the mean size of records is not known
    return;
  }
  plan(open_records(spec_));
}

Source::Source(SourceSpec spec, std::shared_ptr<const RecordSource> records)
    : spec_(std::move(spec)), is_remote_(is_any_remote(spec_)) {
  plan(std::move(records));
}

void Source::plan(std::shared_ptr<const RecordSource> records) {
  print_warnings();
  for (std::size_t i = 0; i < spec_.shards.size(); ++i) {
    const ShardSlot& now = records->shards().slot(i);
    const ShardSpec& then = spec_.shards[i];
    if (now.file_bytes() != then.file_bytes || now.record_count() != then.record_count) {
      refuse_changed(then, std::to_string(now.file_bytes()) + " bytes and " +
                               std::to_string(now.record_count()) + " records");
    }
    facts_.push_back(now.file_facts());
  }
  records_ = std::move(records);
  read_ahead_.emplace(records_->mean_record_bytes(), records_->is_remote(),
                      bytes_of_epoch(records_->record_count(), records_->mean_record_bytes()));
}

bool Source::still_fits() const {
  return facts_now(spec_) == facts_;
}

void Source::begin() const {
  withdraw();
  {
    const std::lock_guard lock(index_folders_mutex_);
    index_folders_ = std::make_shared<IndexFolders>();
  }
  parallel_for(shard_count(), is_remote_ ? kLooksAtOnce : 1, [&](std::size_t shard) {
    WatchedShard& lazy = lazy_shards_[shard];
    std::shared_ptr<const OpenShard> now;
    {
      const std::lock_guard lock(lazy.mutex);
      now = lazy.now;
    }
    if (now == nullptr) return;
    bool is_same = false;
    try {
      is_same = now->file.file->is_still(now->file.file->facts_now());
    } catch (const Error&) {
    }
    std::shared_ptr<OpenShard> dropped;  // closed without the lock
    const std::lock_guard lock(lazy.mutex);
    if (!is_same && lazy.now == now) {
      dropped = std::exchange(lazy.before, std::exchange(lazy.now, nullptr));
    }
  });
}

void Source::withdraw() const noexcept {
  if (spec_.planned || !is_remote_) return;
  for (std::size_t shard = 0; shard < shard_count(); ++shard) {
    WatchedShard& lazy = lazy_shards_[shard];
    const std::lock_guard lock(lazy.mutex);
    if (lazy.now != nullptr) lazy.now->withdraw();
    if (lazy.before != nullptr) lazy.before->withdraw();
  }
}

void Source::OpenShard::withdraw() noexcept {
  Announcements dropped;
  const std::lock_guard lock(announced_mutex);
  dropped.swap(announced);
  announced_ranges.clear();
}

void Source::OpenShard::announce(std::uint64_t begin, std::uint64_t end) noexcept {
  const StoredFile& stored = *file.file;
  if (!stored.traits().is_remote || stored.is_inflated()) return;
  end = std::min(stored.bytes(), end);
  std::vector<FileRange> missing;
  try {
    const std::lock_guard lock(announced_mutex);
    std::map<std::uint64_t, std::uint64_t>& ranges = announced_ranges;
    auto next = ranges.upper_bound(begin);
    if (next != ranges.begin() && std::prev(next)->second >= begin) --next;
    std::uint64_t first = begin;
    std::uint64_t last = end;
    for (std::uint64_t at = begin; at < end;) {
      if (next == ranges.end() || next->first >= end) {
        missing.push_back({at, end - at});
        break;
      }
      if (next->first > at) missing.push_back({at, next->first - at});
      at = std::max(at, next->second);
      first = std::min(first, next->first);
      last = std::max(last, next->second);
      next = ranges.erase(next);
    }
    if (first < last) ranges[first] = last;
    auto announcement = stored.announce(missing);
    if (announcement != nullptr) announced.push_back(std::move(announcement));
  } catch (const std::exception&) {
    // An announcement is only advice.
  }
}

void Source::refuse_other_records(const Source& then) const {
  if (!spec_.planned) return;
  for (std::size_t i = 0; i < spec_.shards.size(); ++i) {
    if (facts_[i] == then.facts_[i]) continue;
    const auto index = shard_set().slot(i).index().load();
    if (index->has_same_entries(*then.shard_set().slot(i).index().load())) continue;
    refuse_changed(spec_.shards[i], "as many of both, but the records have moved");
  }
}

Source::OpenShard::OpenShard(const std::string& path, IoMode io, const IndexOptions& options)
    : walked(path, io, options),
      file{walked.file(), nullptr, false, {}},
      version(version_of(*walked.file())) {
  print_warnings();
  const bool is_unreadable =
      options.compression != Compression::none && !walked.file()->is_inflated();
  if (is_unreadable) file.index = walked.index();
}

std::shared_ptr<Source::OpenShard> Source::open(std::size_t shard, std::int64_t version) const {
  if (lazy_shards_ == nullptr || shard >= shard_count()) {
    throw Error(ErrorKind::invalid, "A place names shard " + std::to_string(shard) +
                                        " of a dataset that has " + std::to_string(shard_count()) +
                                        ".");
  }
  const std::string& path = spec_.shards[shard].path;
  WatchedShard& lazy = lazy_shards_[shard];
  const std::lock_guard opening(lazy.opening);
  std::shared_ptr<OpenShard> found;
  {
    const std::lock_guard lock(lazy.mutex);
    if (version != 0 && lazy.before != nullptr && lazy.before->version == version) {
      return lazy.before;
    }
    found = lazy.now;
  }
  if (found == nullptr) {
    IndexOptions options = shard_options(spec_).index;
    {
      const std::lock_guard folders_lock(index_folders_mutex_);
      options.folders = index_folders_;
    }
    found = std::make_shared<OpenShard>(path, spec_.io, options);
    const std::lock_guard lock(lazy.mutex);
    // Another file of the same size and time. Its places must not be taken for the earlier file's.
    if (lazy.before != nullptr && lazy.before->version == found->version) ++found->version;
    lazy.now = found;
  }
  if (version != 0 && version != found->version) {
    throw Error(ErrorKind::stale_index,
                "'" + path +
                    "' is not the file in which this iteration has a place: it was replaced or "
                    "changed. Begin the iteration again.",
                {path, {}, {}});
  }
  return found;
}

LoadCounts& Source::counts_of(std::string_view plan) const {
  const std::lock_guard lock(counts_mutex_);
  const auto found = counts_.find(head_of(plan));
  return found != counts_.end() ? found->second : counts_[std::string(head_of(plan))];
}

Announcements Source::announce(std::span<const std::int64_t> records, std::uint64_t epoch) const {
  ReadAhead now(records_->mean_record_bytes(), true);
  Announcements announced = records_->announce(records, now, epoch).files;
  for (const auto& each : announced) each->hurry();
  return announced;
}

Announcements Source::announce(std::span<const Row> rows) const noexcept {
  if (records_ != nullptr && !records_->is_remote()) {
    return records_->reader()->announce(rows, *read_ahead_);
  }
  if (rows.empty()) return {};
  const StoredFile& file = *rows.front().shard->file;
  if (records_ == nullptr && !file.traits().is_remote) {
    // Without a mapping, the system sees reads in order, and reads ahead by itself.
    if (file.mapping() == nullptr) return {};
    std::uint64_t bytes = 0;
    for (const Row& row : rows) bytes += row.frame.payload_bytes + kFrameOverhead;
    if (!read_ahead_->is_due(bytes) || !read_ahead_->is_cold(rows)) return {};
    return read_ahead_->announce(rows).files;
  }
  Announcements announced = announce_rows(rows, Reads::the_same).files;
  for (const auto& each : announced) each->hurry();
  return announced;
}

std::shared_ptr<const Source> open_source(std::string_view text, std::int64_t edition) {
  const std::shared_ptr<SharedSource> entry = Registry::instance().find(text, edition);
  const std::lock_guard lock(entry->mutex);
  std::shared_ptr<const Source> source = entry->source.lock();
  if (source == nullptr) {
    source = std::make_shared<const Source>(SourceSpec::decode(text));
    entry->source = source;
  }
  return source;
}

Begun begin_source(std::string_view text) {
  std::shared_ptr<const Source> before;  // of the last edition
  for (std::int64_t edition = 0;; ++edition) {
    const std::shared_ptr<SharedSource> entry = Registry::instance().find(text, edition);
    const std::lock_guard lock(entry->mutex);
    std::shared_ptr<const Source> source = entry->source.lock();
    if (source == nullptr) {
      source = std::make_shared<const Source>(SourceSpec::decode(text));
      if (before != nullptr) source->refuse_other_records(*before);
      entry->source = source;
      return {source, edition};
    }
    if (!source->spec().planned) source->begin();
    if (!source->spec().planned || source->still_fits()) return {source, edition};
    before = std::move(source);
  }
}

std::shared_ptr<const Source> adopt_source(SourceSpec spec,
                                           const std::shared_ptr<const RecordSource>& records) {
  for (spec.edition = 0;; ++spec.edition) {
    const std::shared_ptr<SharedSource> entry = Registry::instance().find(spec.encode(), 0);
    const std::lock_guard lock(entry->mutex);
    const std::shared_ptr<const Source> before = entry->source.lock();
    if (before != nullptr && before->still_fits()) return before;
    if (before != nullptr) continue;
    const auto source = std::make_shared<const Source>(std::move(spec), records);
    entry->source = source;
    return source;
  }
}

}  // namespace tfrfast::tensorflow
