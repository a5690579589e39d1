#include "tensorflow/share.h"

#include <algorithm>
#include <utility>

namespace tfrfast::tensorflow {
namespace {

// The same files among numbers below `end`, with limits on the first file and the stride, so that
// calculations cannot overflow.
Progression bounded(Files files, std::int64_t end) {
  return {std::min(files.first, end), std::min(files.stride, std::max<std::int64_t>(end, 1)),
          kEndless};
}

// An upper bound of the records in any shard.
std::int64_t max_record_count(const Source& source) {
  std::uint64_t count = 0;
  for (const ShardSpec& shard : source.spec().shards) count = std::max(count, shard.record_count);
  return static_cast<std::int64_t>(count);
}

}  // namespace

ShareBounds bounds_of(Files files, std::int64_t shard_count, std::int64_t max_records) noexcept {
  const Files every;
  const bool by_file = files.stride <= shard_count;
  return {bounded(by_file ? files : every, shard_count).below(shard_count),
          bounded(by_file ? every : files, max_records)};
}

Share::Share(std::shared_ptr<const Source> source, Files files)
    : source_(std::move(source)), files_(files) {
  const auto shard_count = static_cast<std::int64_t>(source_->shard_count());
  const ShareBounds bounds = bounds_of(files, shard_count, max_record_count(*source_));
  shards_ = bounds.shards;
  records_ = bounds.records;
  for (std::int64_t turn = 0; turn < shards_.count; ++turn) {
    const auto each = static_cast<std::size_t>(shards_.at(turn));
    const auto records = static_cast<std::int64_t>(source_->spec().shards[each].record_count);
    first_records_.push_back(first_records_.back() + records_.below(records).count);
  }
}

std::shared_ptr<const Sequence> Share::own(const Sequence& sequence) const {
  const std::shared_ptr<const Own> own =
      own_->get([&](const Own& last) { return last.of == sequence; },
                [&] {
                  Sequence mine = sequence.over(first_records_);
                  // A single record may have any stride. The limit prevents overflow.
                  mine.records.stride =
                      std::min(mine.records.stride, std::max<std::int64_t>(record_count(), 1));
                  return Own{sequence, std::move(mine)};
                });
  return {own, &own->sequence};
}

std::int64_t Share::batch_count(const Sequence& sequence) const {
  return own(sequence)->batch_count();
}

std::vector<std::int64_t> Share::records_of_batch(const Sequence& sequence, std::uint64_t seed,
                                                  std::int64_t step) const {
  std::vector<std::int64_t> records = own(sequence)->batch(seed, step);
  if (files_ == Files{}) return records;
  for (std::int64_t& record : records) {
    const auto first = std::upper_bound(first_records_.begin(), first_records_.end(), record) - 1;
    const auto shard = static_cast<std::size_t>(shards_.at(first - first_records_.begin()));
    record = static_cast<std::int64_t>(source_->shard_set().first_record(shard)) +
             records_.at(record - *first);
  }
  return records;
}

}  // namespace tfrfast::tensorflow
