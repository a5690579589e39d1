#include "tensorflow/source.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>

#include "core/base/parallel.h"
#include "core/index/damage_in_words.h"
#include "core/read/joined_source.h"
#include "core/steps/step_spec.h"
#include "core/storage/storage.h"
#include "tensorflow/print_warnings.h"
#include "tensorflow/steps_ahead.h"

namespace tfrfast::tensorflow {
namespace {

std::uint64_t block_bytes_of(bool is_compressed, std::uint64_t file_bytes) {
  std::uint64_t bytes = is_compressed ? kCompressedBlockBytes : kBlockBytes;
  while (file_bytes / bytes >= kMaxBlocks) bytes *= 2;
  return bytes;
}

bool is_any_remote(const SourceSpec& spec) {
  return std::any_of(spec.shards.begin(), spec.shards.end(), [](const ShardSpec& shard) {
    return storage_of(shard.path).traits.is_remote;
  });
}

std::int64_t blocks_of(std::uint64_t file_bytes, std::uint64_t block_bytes) {
  return static_cast<std::int64_t>(file_bytes / block_bytes + (file_bytes % block_bytes != 0));
}

// The number of remote shards examined at the same time.
constexpr unsigned kLooksAtOnce = 32;
// In file order, at most this many bytes of remote shards are announced, and no more than the
// iteration has read so far: many iterations end early.
constexpr std::uint64_t kAnnouncedBytes = std::uint64_t{128} << 20;

// A compressed shard is inflated so far before its turn. The spans of both shards have to stay in
// memory until they are read.
constexpr std::uint64_t kWalkedAheadBytes = std::uint64_t{64} << 20;

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

std::string damage_text(const IndexedShard& shard, const Damage& damage) {
  try {
    throw_damage(shard, damage);
  } catch (const Error& error) {
    return encode_error(error);
  }
}

}  // namespace

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

Steps steps_of(std::span<const std::int64_t> numbers) {
  if (numbers.size() != 5 || numbers[3] < 0 || numbers[4] <= numbers[3]) {
    throw Error(ErrorKind::invalid,
                "A dataset's steps are given by five numbers: a key, files as a first one and a "
                "stride, the first step, and the end of the steps, which is larger.");
  }
  return {static_cast<std::uint64_t>(numbers[0]), files_of(numbers.subspan(1, 2)), numbers[3],
          numbers[4]};
}

Source::Source(SourceSpec spec) : spec_(std::move(spec)), is_remote_(is_any_remote(spec_)) {
  if (!spec_.planned) {
    const bool is_compressed = spec_.compression != Compression::none;
    lazy_shards_ = std::make_unique<ReachedShard[]>(spec_.shards.size());
    lazy_files_ = std::make_unique<IndexedShard[]>(spec_.shards.size());
    facts_ = facts_now(spec_);
    read_ahead_.emplace(1, false);  // counts bytes: the mean size of records is not known
    for (const FileFacts& facts : facts_) {
      // A missing file has one block, so that its turn reports the error.
      const bool missing = facts == FileFacts{};
      const std::uint64_t bytes = facts.bytes;
      block_counts_.push_back(missing ? 1 : blocks_of(bytes, block_bytes_of(is_compressed, bytes)));
    }
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
  places_ = std::make_shared<Places>();
}

bool Source::still_fits() const {
  return facts_now(spec_) == facts_;
}

void Source::begin_again() const noexcept {
  if (spec_.planned || !is_remote_) return;
  for (std::size_t shard = 0; shard < shard_count(); ++shard) {
    ReachedShard& lazy = lazy_shards_[shard];
    Announcements dropped;
    const std::lock_guard lock(lazy.announced_mutex);
    dropped.swap(lazy.announced);
    lazy.announced_ranges.clear();
  }
}

struct Source::Use {
  explicit Use(std::shared_ptr<const Source> used) : source(std::move(used)) {}
  ~Use() { source->begin_again(); }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  const std::shared_ptr<const Source> source;
};

std::shared_ptr<const void> Source::use(const std::shared_ptr<const Source>& source) {
  if (source->spec_.planned || !source->is_remote_) return nullptr;
  const std::lock_guard lock(source->use_mutex_);
  std::shared_ptr<const Use> use = source->use_.lock();
  if (use == nullptr) {
    use = std::make_shared<const Use>(source);
    source->use_ = use;
  }
  return use;
}

// Announces bytes [begin, end) of a shard. Each byte is announced once per iteration, although the
// calls for neighbouring blocks come in any order.
void Source::announce_bytes(std::size_t shard, std::uint64_t begin,
                            std::uint64_t end) const noexcept {
  const StoredFile& file = *lazy_files_[shard].file;
  if (!file.traits().is_remote || file.is_inflated()) return;
  end = std::min(file.bytes(), end);
  std::vector<FileRange> missing;
  try {
    const std::lock_guard lock(lazy_shards_[shard].announced_mutex);
    std::map<std::uint64_t, std::uint64_t>& announced = lazy_shards_[shard].announced_ranges;
    auto next = announced.upper_bound(begin);
    if (next != announced.begin() && std::prev(next)->second >= begin) --next;
    std::uint64_t first = begin;
    std::uint64_t last = end;
    for (std::uint64_t at = begin; at < end;) {
      if (next == announced.end() || next->first >= end) {
        missing.push_back({at, end - at});
        break;
      }
      if (next->first > at) missing.push_back({at, next->first - at});
      at = std::max(at, next->second);
      first = std::min(first, next->first);
      last = std::max(last, next->second);
      next = announced.erase(next);
    }
    if (first < last) announced[first] = last;
    auto announcement = file.announce(missing);
    if (announcement != nullptr) lazy_shards_[shard].announced.push_back(std::move(announcement));
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

std::shared_ptr<ProgressiveIndex> Source::reach(std::size_t shard) const {
  ReachedShard& lazy = lazy_shards_[shard];
  std::lock_guard lock(lazy.mutex);
  if (lazy.shard == nullptr) {
    IndexOptions options = shard_options(spec_).index;
    options.folders = index_folders_;
    auto reached = std::make_shared<ProgressiveIndex>(spec_.shards[shard].path, spec_.io, options);
    print_warnings();
    const bool is_unreadable =
        spec_.compression != Compression::none && !reached->file()->is_inflated();
    lazy_files_[shard] = {reached->file(), is_unreadable ? reached->index() : nullptr, false, {}};
    lazy.shard = std::move(reached);
  }
  return lazy.shard;
}

Records Source::read(std::span<const std::int64_t> records) const {
  if (records_->reader() == nullptr) return Records::of_made(*records_, records);
  std::vector<Row> rows(records.size());
  frames().locate(records, rows.data());
  return read(rows);
}

const Reader& Source::frames() const {
  if (records_->reader() != nullptr) return *records_->reader();
  throw Error(ErrorKind::invalid, "The records of this source are made from parts of shards.");
}

Announcements Source::announce(std::span<const std::int64_t> records) const {
  if (records_->reader() != nullptr) {
    std::vector<Row> rows(records.size());
    frames().locate(records, rows.data());
    return announce(rows);
  }
  ReadAhead now(records_->mean_record_bytes(), true);
  Announcements announced = records_->announce(records, now).files;
  for (const auto& each : announced) each->hurry();
  return announced;
}

Records Source::read(std::span<const Row> rows) const {
  const Announcements announced = announce(rows);
  return Records::read(rows, read_options(), place());
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

std::uint64_t Source::announce_beginning(std::size_t shard, const Progression& wanted,
                                         std::uint64_t bytes) const noexcept {
  const std::shared_ptr<const ShardIndex> index = index_at_hand(shard);
  if (index == nullptr) return 0;  // the walk that makes the index reads ahead
  return announce_wanted(shard, *index, wanted, 0, bytes);
}

// Announces the wanted records in bytes [begin, end) of a shard, in whole requests. Returns how
// many of the bytes lie beyond the shard's end.
std::uint64_t Source::announce_wanted(std::size_t shard, const ShardIndex& index,
                                      const Progression& wanted, std::uint64_t begin,
                                      std::uint64_t end) const noexcept {
  const Progression here = wanted.below(static_cast<std::int64_t>(index.record_count()));
  const StoredFile& file = *lazy_files_[shard].file;
  if (here.count <= 0 || !file.traits().is_remote || file.is_inflated()) return 0;
  const std::uint64_t request = std::max<std::uint64_t>(file.traits().request_bytes, 1);
  end = (end + request - 1) / request * request;
  if (here.count < wanted.count) {
    announce_bytes(shard, begin, end);
    return end - std::min(end, file.bytes());
  }
  try {
    const Frame last = index.frame(static_cast<std::uint64_t>(here.at(here.count - 1)));
    announce_bytes(shard, begin, std::min(end, last.offset + last.payload_bytes + kFrameOverhead));
  } catch (const Error&) {
    // The index is damaged. Reading the record will report the damage.
  }
  return 0;
}

// Inflates both the rest of a compressed shard and the beginning of the next one.
void Source::walk_ahead(const ProgressiveIndex& here, std::size_t next) const noexcept {
  if (is_remote_ || !here.is_near_end(kWalkedAheadBytes)) return;
  try {
    reach(next)->walk_ahead(kWalkedAheadBytes);
  } catch (const std::exception&) {
    // Reading the shard will report the error.
  }
}

std::uint64_t Source::find(std::size_t shard, std::int64_t begin, std::int64_t end,
                           const Progression& wanted, std::uint64_t bytes_before,
                           std::optional<std::size_t> next, Found& found) const {
  std::uint64_t beyond = 0;
  ProgressiveIndex::FoundFrames read;
  try {
    const std::uint64_t bytes =
        block_bytes_of(spec_.compression != Compression::none, facts_[shard].bytes);
    // A file may have grown since its blocks were counted.
    const std::uint64_t last = end == block_counts_[shard]
                                   ? std::numeric_limits<std::uint64_t>::max()
                                   : static_cast<std::uint64_t>(end) * bytes;
    const std::uint64_t first = static_cast<std::uint64_t>(begin) * bytes;
    const std::shared_ptr<ProgressiveIndex> reached = reach(shard);
    read = reached->frames_in_file(first, last, [&] {
      if (next) walk_ahead(*reached, *next);
    });
    if (is_remote_ && wanted.stride == 1 && !read.frames.empty()) {
      const Frame& end_frame = read.frames.back();
      const std::uint64_t frames_end = end_frame.offset + end_frame.payload_bytes + kFrameOverhead;
      const std::uint64_t frames_begin = read.frames.front().offset;
      if (const auto index = reached->index(); index != nullptr) {
        beyond = announce_wanted(shard, *index, wanted, frames_begin,
                                 frames_end + std::min(bytes_before + frames_end, kAnnouncedBytes));
      } else {  // the walk that makes the index reads ahead
        announce_bytes(shard, frames_begin, frames_end);
      }
    }
  } catch (const Error& error) {
    found.troubles.push_back({found.rows.size(), encode_error(error)});
    return 0;
  }
  const IndexedShard& file = lazy_files_[shard];
  auto damage = read.damage.begin();
  // Damage comes before the next row.
  const auto add_damage_before = [&](std::uint64_t number) {
    for (; damage != read.damage.end() && damage->records_before <= number; ++damage) {
      if (spec_.skip_damage || is_clean_end(*damage)) continue;
      const auto record = static_cast<std::int64_t>(damage->records_before);
      const bool is_passed_over =
          record < wanted.first || (record - wanted.first) / wanted.stride >= wanted.count;
      if (!is_passed_over)
        found.troubles.push_back({found.rows.size(), damage_text(file, *damage)});
    }
  };
  found.rows.reserve(found.rows.size() + read.frames.size());
  std::uint64_t number = read.first_number;
  for (const Frame& frame : read.frames) {
    add_damage_before(number);
    if (wanted.has(static_cast<std::int64_t>(number))) {
      found.rows.push_back({&file, number, number, frame});
    }
    ++number;
  }
  add_damage_before(std::numeric_limits<std::uint64_t>::max());
  return beyond;
}

std::int64_t Source::record_count(std::size_t shard) const {
  try {
    const std::shared_ptr<ProgressiveIndex> reached = reach(shard);
    if (reached->index() == nullptr) {
      constexpr std::uint64_t end = std::numeric_limits<std::uint64_t>::max();
      reached->frames_in_file(end - 1, end);
    }
    const std::shared_ptr<const ShardIndex> index = reached->index();
    return index == nullptr ? 0 : static_cast<std::int64_t>(index->record_count());
  } catch (const Error&) {
    if (!lazy_shards_[shard].is_begun) throw;
    return 0;
  }
}

std::shared_ptr<const ShardIndex> Source::index_at_hand(std::size_t shard) const {
  try {
    return reach(shard)->index();
  } catch (const Error&) {
    return nullptr;
  }
}

std::int64_t Source::block_of(std::size_t shard, const ShardIndex& index,
                              std::uint64_t number) const {
  const Frame frame = index.frame(number);
  std::uint64_t file_offset = frame.offset;
  if (const auto& points = index.seek_points(); points != nullptr) {
    file_offset = (*points)[points->find(frame.offset)].place.file_offset;
  }
  const bool is_compressed = spec_.compression != Compression::none;
  return static_cast<std::int64_t>(file_offset /
                                   block_bytes_of(is_compressed, facts_[shard].bytes));
}

const IndexedShard& Source::file(std::size_t shard, std::uint64_t end) const {
  if (lazy_shards_ == nullptr || shard >= shard_count()) {
    throw Error(ErrorKind::invalid, "An address names shard " + std::to_string(shard) +
                                        " of a dataset that has " + std::to_string(shard_count()) +
                                        ".");
  }
  const std::shared_ptr<ProgressiveIndex> reached = reach(shard);
  const IndexedShard& file = lazy_files_[shard];
  // Inflating can begin only at places that the walk has reached.
  if (file.file->is_inflated() && file.file->bytes() < end) reached->frames_in(end - 1, end);
  return file;
}

}  // namespace tfrfast::tensorflow
