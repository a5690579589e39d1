#include "tensorflow/source.h"

#include <algorithm>
#include <array>

#include "core/base/parallel.h"
#include "core/index/damage_in_words.h"
#include "core/storage/storage.h"
#include "tensorflow/print_warnings.h"

namespace tfrfast::tensorflow {
namespace {

std::uint64_t block_bytes_of(bool is_compressed, std::uint64_t file_bytes) {
  std::uint64_t bytes = is_compressed ? kCompressedBlockBytes : kBlockBytes;
  while (file_bytes / bytes >= kMaxBlocks) bytes *= 2;
  return bytes;
}

std::uint64_t block_bytes_of(const ShardIndex& index) {
  return block_bytes_of(index.seek_points() != nullptr, index.facts().file_bytes);
}

std::int64_t blocks_of(std::uint64_t file_bytes, std::uint64_t block_bytes) {
  return static_cast<std::int64_t>(file_bytes / block_bytes + (file_bytes % block_bytes != 0));
}

FileFacts facts_or_zeros(const std::string& path) {
  try {
    return examine_file(path);
  } catch (const Error&) {
    return {};
  }
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
  options.skip_damage = true;
  options.threads = usable_processors();
  return options;
}

std::shared_ptr<const ShardSet> open_shards(const SourceSpec& spec,
                                            const OpeningProgress& progress) {
  std::vector<std::string> paths;
  paths.reserve(spec.shards.size());
  for (const ShardSpec& shard : spec.shards) paths.push_back(shard.path);
  return ShardSet::open(paths, shard_options(spec), progress);
}

Files files_of(std::span<const std::int64_t> numbers) {
  if (numbers.size() != 2 || numbers[0] < 0 || numbers[1] < 1) {
    throw Error(ErrorKind::invalid,
                "A dataset's files are given by a first one from 0 on and a stride from 1 on.");
  }
  return {numbers[0], numbers[1]};
}

Source::Source(SourceSpec spec) : spec_(std::move(spec)) {
  if (!spec_.planned) {
    const bool is_compressed = spec_.compression != Compression::none;
    late_shards_ = std::make_unique<LateShard[]>(spec_.shards.size());
    for (const ShardSpec& shard : spec_.shards) {
      facts_.push_back(facts_or_zeros(shard.path));
      // A missing file has one block, so that it is reported when its turn comes.
      const bool missing = facts_.back() == FileFacts{};
      const std::uint64_t bytes = facts_.back().bytes;
      block_counts_.push_back(missing ? 1 : blocks_of(bytes, block_bytes_of(is_compressed, bytes)));
    }
    return;
  }
  plan(open_shards(spec_));
}

Source::Source(SourceSpec spec, std::shared_ptr<const ShardSet> shards) : spec_(std::move(spec)) {
  plan(std::move(shards));
}

void Source::plan(std::shared_ptr<const ShardSet> shards) {
  print_warnings();
  for (std::size_t i = 0; i < spec_.shards.size(); ++i) {
    const ShardIndex& index = *(*shards)[i].index;
    const ShardSpec& then = spec_.shards[i];
    if (index.facts().file_bytes != then.file_bytes || index.record_count() != then.record_count) {
      refuse_changed(then, std::to_string(index.facts().file_bytes) + " bytes and " +
                               std::to_string(index.record_count()) + " records");
    }
    facts_.push_back((*shards)[i].file->facts());
    block_counts_.push_back(blocks_of(then.file_bytes, block_bytes_of(index)));
  }
  reader_ = std::make_shared<const Reader>(std::move(shards), read_options());
}

bool Source::still_fits() const {
  for (std::size_t i = 0; i < spec_.shards.size(); ++i) {
    if (facts_or_zeros(spec_.shards[i].path) != facts_[i]) return false;
  }
  return true;
}

void Source::refuse_other_records(const Source& then) const {
  if (!spec_.planned) return;
  for (std::size_t i = 0; i < spec_.shards.size(); ++i) {
    if (facts_[i] == then.facts_[i] ||
        shard_set()[i].index->has_same_entries(*then.shard_set()[i].index)) {
      continue;
    }
    refuse_changed(spec_.shards[i], "as many of both, but the records lie elsewhere");
  }
}

std::shared_ptr<ProgressiveIndex> Source::reach(std::size_t shard) const {
  LateShard& late = late_shards_[shard];
  std::lock_guard lock(late.mutex);
  if (late.shard == nullptr) {
    late.shard = std::make_shared<ProgressiveIndex>(spec_.shards[shard].path, spec_.io,
                                                    shard_options(spec_).index);
    print_warnings();
  }
  return late.shard;
}

Records Source::read(std::span<const std::int64_t> records) const {
  std::vector<Row> rows(records.size());
  reader_->locate(records, rows.data());
  reader_->announce(rows);
  return Records::read(rows, read_options(), place());
}

Records Source::read_block(std::size_t shard, std::int64_t block, const Progression& wanted,
                           std::int64_t end) const {
  const auto number = static_cast<std::uint64_t>(block);
  try {
    if (spec_.planned) {
      const IndexedShard& indexed = shard_set()[shard];
      const std::uint64_t bytes = block_bytes_of(*indexed.index);
      const std::uint64_t begin = number * bytes;
      return read_stretch(indexed, stretch_in_file_of(*indexed.index, begin, begin + bytes),
                          static_cast<std::int64_t>(shard_set().first_record(shard)), wanted, end);
    }
    const std::shared_ptr<ProgressiveIndex> reached = reach(shard);
    const bool is_unreadable =
        spec_.compression != Compression::none && !reached->file()->is_inflated();
    const IndexedShard indexed{
        reached->file(), is_unreadable ? reached->index() : nullptr, false, {}};
    const std::uint64_t bytes =
        block_bytes_of(spec_.compression != Compression::none, facts_[shard].bytes);
    const std::uint64_t begin = number * bytes;
    return read_stretch(indexed, reached->stretch_in_file(begin, begin + bytes), 0, wanted, end);
  } catch (const Error& error) {
    return Records::of_error(encode_error(error));
  }
}

Records Source::read_stretch(const IndexedShard& shard, const ProgressiveIndex::Stretch& stretch,
                             std::int64_t first_record, const Progression& wanted,
                             std::int64_t end) const {
  std::vector<Row> rows;
  rows.reserve(stretch.frames.size());
  std::vector<std::size_t> row_of(stretch.frames.size() + 1);  // the next wanted one from each on
  for (std::size_t i = 0; i < stretch.frames.size(); ++i) {
    row_of[i] = rows.size();
    const std::uint64_t number = stretch.first_number + i;
    const std::int64_t record = first_record + static_cast<std::int64_t>(number);
    if (!wanted.has(record)) continue;
    rows.push_back({&shard, number, static_cast<std::uint64_t>(record), stretch.frames[i]});
  }
  row_of.back() = rows.size();

  if (reader_ != nullptr) {
    reader_->announce(rows);
  } else if (shard.file->traits().is_far) {
    announce_rows(rows);
  }
  Records records = Records::read(rows, read_options(), place());
  if (spec_.skip_damage) return records;
  for (const Damage& damage : stretch.damage) {
    if (is_clean_end(damage)) continue;
    const std::int64_t record = first_record + static_cast<std::int64_t>(damage.records_before);
    const bool reaches_end = spec_.planned && wanted.at(wanted.count) >= end;
    const bool passed_over =
        record < wanted.first || (record - wanted.first) / wanted.stride >= wanted.count;
    if (passed_over && !reaches_end) continue;
    const std::uint64_t before = damage.records_before - stretch.first_number;
    records.add_trouble(row_of[std::min<std::size_t>(before, stretch.frames.size())],
                        damage_text(shard, damage));
  }
  return records;
}

std::int64_t Source::block_of(std::size_t shard, std::uint64_t number) const {
  const ShardIndex& index = *shard_set()[shard].index;
  const Frame frame = index.frame(number);
  std::uint64_t file_offset = frame.offset;
  if (const auto& points = index.seek_points(); points != nullptr) {
    file_offset = (*points)[points->find(frame.offset)].place.file_offset;
  }
  return static_cast<std::int64_t>(file_offset / block_bytes_of(index));
}

}  // namespace tfrfast::tensorflow
