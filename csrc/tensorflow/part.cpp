#include "tensorflow/part.h"

#include <algorithm>

#include "core/base/numbering.h"

namespace tfrfast::tensorflow {
namespace {

// These, among numbers below `end`, with a first one and a stride that are no larger: calculating
// with those overflows nothing.
Progression bounded(Files files, std::int64_t end) {
  return {std::min(files.first, end), std::min(files.stride, std::max<std::int64_t>(end, 1)),
          kEndless};
}

// An upper bound of the records in any shard.
std::int64_t max_record_count(const Source& source) {
  if (!source.spec().planned) return kEndless;
  std::uint64_t count = 0;
  for (const ShardSpec& shard : source.spec().shards) count = std::max(count, shard.record_count);
  return static_cast<std::int64_t>(count);
}

}  // namespace

Part::Part(std::shared_ptr<const Source> source, Files files)
    : source_(std::move(source)), files_(files) {
  const Files every;
  const auto shard_count = static_cast<std::int64_t>(source_->shard_count());
  const bool by_file = files.stride <= shard_count;
  shards_ = bounded(by_file ? files : every, shard_count).below(shard_count);
  records_ = bounded(by_file ? every : files, max_record_count(*source_));
  for (std::int64_t turn = 0; turn < shards_.count; ++turn) {
    const auto each = static_cast<std::size_t>(shards_.at(turn));
    const auto record_count = static_cast<std::int64_t>(source_->spec().shards[each].record_count);
    first_blocks_.push_back(first_blocks_.back() + source_->block_count(each));
    first_records_.push_back(first_records_.back() + records_.below(record_count).count);
  }
}

Part::Place Part::place(const std::vector<std::int64_t>& firsts, std::int64_t number) {
  const auto after = std::upper_bound(firsts.begin(), firsts.end(), number);
  return {static_cast<std::size_t>(after - firsts.begin()) - 1, number - *(after - 1)};
}

Sequence Part::own(const Sequence& sequence) const {
  if (!source_->spec().planned) return sequence;
  Sequence mine = sequence.over(record_count());
  // A single record may come with any stride. Bounded, it overflows nothing.
  mine.records.stride = std::min(mine.records.stride, std::max<std::int64_t>(record_count(), 1));
  return mine;
}

std::int64_t Part::in_source(std::size_t turn, std::int64_t number) const {
  const std::int64_t within = records_.at(number - first_records_[turn]);
  if (!source_->spec().planned) return within;
  return static_cast<std::int64_t>(source_->shard_set().first_record(shard(turn))) + within;
}

std::int64_t Part::block_of(std::int64_t record) const {
  const Place at = place(first_records_, record);
  const auto within = static_cast<std::uint64_t>(records_.at(at.within));
  return first_blocks_[at.turn] + source_->block_of(shard(at.turn), within);
}

std::pair<std::int64_t, std::int64_t> Part::blocks_of(const Progression& records) const {
  // Even without records there may be damage to report.
  const std::int64_t all = first_blocks_.back();
  if (!source_->spec().planned) return {0, all};
  if (records.first == 0 && records.stride == 1 && records.count == record_count()) return {0, all};
  if (records.count == 0) return {};
  const std::int64_t after = records.at(records.count);
  const std::int64_t first = records.first > 0 ? block_of(records.first) : 0;
  const bool to_the_end = after >= record_count();
  return {first, (to_the_end ? all : block_of(after - records.stride) + 1) - first};
}

std::int64_t Part::step_count(const Sequence& sequence) const {
  const Sequence mine = own(sequence);
  if (mine.batch_rows > 0) return mine.batch_count();
  return in_epochs(blocks_of(mine.records).second, mine.epochs);
}

std::vector<std::int64_t> Part::records_of_batch(const Sequence& sequence, std::uint64_t seed,
                                                 std::int64_t step) const {
  std::vector<std::int64_t> records = own(sequence).batch(seed, step);
  if (files_ == Files{}) return records;
  for (std::int64_t& record : records) {
    record = in_source(place(first_records_, record).turn, record);
  }
  return records;
}

std::pair<std::int64_t, std::int64_t> Part::blocks_of_file(std::int64_t turn) const {
  if (turn < 0 || turn >= shards_.count) {
    throw_no_such("File", std::to_string(turn), static_cast<std::uint64_t>(shards_.count));
  }
  const auto at = static_cast<std::size_t>(turn);
  return {first_blocks_[at], first_blocks_[at + 1]};
}

Records Part::read_block(const Sequence& sequence, std::int64_t step) const {
  const Progression records = own(sequence).records;
  const auto [first, count] = blocks_of(records);
  if (step < 0 || count == 0) {
    throw_no_such("Block", std::to_string(step), static_cast<std::uint64_t>(count));
  }
  const Place at = place(first_blocks_, first + step % count);
  const Progression wanted{in_source(at.turn, records.first), records.stride * records_.stride,
                           records.count};
  return source_->read_block(shard(at.turn), at.within, wanted, in_source(at.turn, record_count()));
}

std::shared_ptr<const Part> PartHolder::open(std::string_view text, Files files, bool look) {
  const std::shared_ptr<const Source> source = sources_.open(text, look);
  return parts_.get(
      [&](const Part& last) { return last.source() == source && last.files() == files; },
      [&] { return Part(source, files); });
}

void fail_full_batch(const Sequence& sequence, std::string_view error) {
  if (sequence.drop_remainder && !error.empty()) throw failure_of(error);
}

}  // namespace tfrfast::tensorflow
