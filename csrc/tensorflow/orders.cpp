#include "tensorflow/orders.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/load/image_draws.h"
#include "core/order/siphash.h"

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

Share::Share(std::shared_ptr<const Source> source, Files files,
             std::shared_ptr<const Sequence> sequence)
    : source_(std::move(source)), files_(files), sequence_(std::move(sequence)) {
  const auto shard_count = static_cast<std::int64_t>(source_->shard_count());
  const ShareBounds bounds = bounds_of(files, shard_count, max_record_count(*source_));
  shards_ = bounds.shards;
  records_ = bounds.records;
  for (std::int64_t turn = 0; turn < shards_.count; ++turn) {
    const auto each = static_cast<std::size_t>(shards_.at(turn));
    const auto records = static_cast<std::int64_t>(source_->spec().shards[each].record_count);
    first_records_.push_back(first_records_.back() + records_.below(records).count);
  }
  own_ = sequence_->over(first_records_);
  // A single record may have any stride. The limit prevents overflow.
  own_.records.stride =
      std::min(own_.records.stride, std::max<std::int64_t>(first_records_.back(), 1));
}

std::vector<std::int64_t> Share::records_of_batch(std::uint64_t seed, std::int64_t step) const {
  std::vector<std::int64_t> records = own_.batch(seed, step);
  if (files_ == Files{}) return records;
  for (std::int64_t& record : records) {
    const auto first = std::upper_bound(first_records_.begin(), first_records_.end(), record) - 1;
    const auto shard = static_cast<std::size_t>(shards_.at(first - first_records_.begin()));
    record = static_cast<std::int64_t>(source_->shard_set().first_record(shard)) +
             records_.at(record - *first);
  }
  return records;
}

LoadingPlan::LoadingPlan(std::string_view plan, std::int64_t epoch, std::int64_t key)
    : head_(head_of(plan)), epoch_(epoch), key_(key) {
  PlanOptions options = Plan::decode(plan).options();
  if (key != 0) options.seed = siphash({static_cast<std::uint64_t>(key), 0}, {options.seed});
  run_.epoch = static_cast<std::uint64_t>(epoch);
  run_.first = std::make_shared<const Plan>(options);
  options.start = 0;
  run_.whole = std::make_shared<const Plan>(options);
}

bool LoadingPlan::is_of(std::string_view plan, std::int64_t epoch,
                        std::int64_t key) const noexcept {
  return key == key_ && epoch == epoch_ && head_of(plan) == head_;
}

BatchRows LoadingPlan::rows(std::int64_t step, bool with_draws) const {
  const PlanRun::Step at = run_.at(static_cast<std::uint64_t>(step));
  const auto epoch = at.plan->of_epoch(at.epoch);
  if (step < 0 || at.plan->row_count(at.step) == 0) {
    throw Error(ErrorKind::invalid, "The plan has no such step.");
  }
  BatchRows rows;
  at.plan->batch(*epoch, at.step, rows.planned);
  const std::span<const std::int64_t> records = rows.planned.wanted();
  rows.records.assign(records.begin(), records.end());
  rows.epoch = key_ == 0 ? at.epoch : siphash({static_cast<std::uint64_t>(key_), 1}, {at.epoch});
  if (with_draws) rows.draws = image_draws(*at.plan, at.epoch, at.step, rows.planned);
  return rows;
}

}  // namespace tfrfast::tensorflow
