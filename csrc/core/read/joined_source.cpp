#include "core/read/joined_source.h"

#include <algorithm>

#include "core/base/hashing.h"
#include "core/base/numbering.h"

namespace tfrfast {

JoinedSource::JoinedSource(std::vector<std::shared_ptr<const RecordSource>> sources)
    : sources_(std::move(sources)) {
  std::vector<std::shared_ptr<const ShardSet>> sets;
  std::vector<std::int64_t> starts;
  std::size_t shards = 0;
  unsigned __int128 bytes = 0;
  for (const auto& each : sources_) {
    sets.push_back(std::shared_ptr<const ShardSet>(each, &each->shards()));
    starts.push_back(static_cast<std::int64_t>(record_count_));
    first_shards_.push_back(shards);
    shards += each->shards().size();
    record_count_ += each->record_count();
    bytes += static_cast<unsigned __int128>(each->mean_record_bytes()) * each->record_count();
  }
  shards_ = ShardSet::joined(sets);
  starts_ = std::make_shared<const std::vector<std::int64_t>>(std::move(starts));
  if (record_count_ > 0) mean_record_bytes_ = static_cast<std::uint64_t>(bytes / record_count_);
}

void JoinedSource::describe_parts(std::vector<PartSpec>& parts) const {
  for (const auto& each : sources_) each->describe_parts(parts);
}

std::uint64_t JoinedSource::fingerprint() const {
  Fnv1a hash;
  for (const auto& each : sources_) {
    const std::uint64_t value = each->fingerprint();
    hash.add(&value, sizeof value);
  }
  return hash.value();
}

std::size_t JoinedSource::source_of(std::uint64_t record) const noexcept {
  const auto after =
      std::upper_bound(starts_->begin(), starts_->end(), static_cast<std::int64_t>(record));
  return static_cast<std::size_t>(after - starts_->begin()) - 1;
}

std::size_t JoinedSource::shard_of(std::uint64_t record, std::size_t hint) const {
  const std::size_t source = source_of(record);
  const std::size_t first = first_shards_[source];
  const std::size_t count = sources_[source]->shards().size();
  const bool fits = hint >= first && hint - first < count;
  return first + sources_[source]->shard_of(record - start(source), fits ? hint - first : 0);
}

RecordOrigin JoinedSource::origin(std::uint64_t record) const {
  const std::size_t source = source_of(record);
  return sources_[source]->origin(record - start(source));
}

bool JoinedSource::inflates() const noexcept {
  return std::any_of(sources_.begin(), sources_.end(),
                     [](const auto& each) { return each->inflates(); });
}

bool JoinedSource::is_remote() const noexcept {
  return std::any_of(sources_.begin(), sources_.end(),
                     [](const auto& each) { return each->is_remote(); });
}

std::vector<JoinedSource::SourceRows> JoinedSource::divide(
    std::span<const std::int64_t> records) const {
  std::vector<SourceRows> parts(sources_.size());
  for (std::size_t row = 0; row < records.size(); ++row) {
    const auto record = static_cast<std::uint64_t>(records[row]);
    if (record >= record_count_) {
      throw_no_such("Record", std::to_string(records[row]), record_count_);
    }
    const std::size_t source = source_of(record);
    parts[source].rows.push_back(row);
    parts[source].records.push_back(static_cast<std::int64_t>(record - start(source)));
  }
  return parts;
}

std::shared_ptr<RecordBatch> JoinedSource::renumbered(std::shared_ptr<const RecordBatch> batch,
                                                      std::size_t source) const {
  // No other thread holds the batch yet.
  auto own = std::const_pointer_cast<RecordBatch>(std::move(batch));
  for (std::size_t row = 0; row < own->size(); ++row) {
    own->indices()[row] += static_cast<std::int64_t>(start(source));
  }
  own->set_source_starts(starts_);
  return own;
}

std::shared_ptr<const RecordBatch> JoinedSource::read(const ReadRequest& request) const {
  const std::size_t count = request.records.size();
  const std::vector<SourceRows> parts = divide(request.records);
  std::vector<std::shared_ptr<RecordBatch>> batches(parts.size());
  std::vector<RecordBatch::RowOf> found(count);  // a row that was left out has no batch
  for (std::size_t source = 0; source < parts.size(); ++source) {
    const SourceRows& part = parts[source];
    if (part.rows.empty()) continue;
    const bool is_all = part.rows.size() == count;
    ReadRequest own = request;
    own.records = part.records;
    if (!is_all) own.valid = nullptr;
    batches[source] = renumbered(sources_[source]->read(own), source);
    if (is_all) return batches[source];
    const RecordBatch& batch = *batches[source];
    std::size_t next = 0;
    for (const std::size_t row : part.rows) {
      if (next == batch.size() || batch.indices()[next] != request.records[row]) continue;
      if (request.valid != nullptr) batch.valid()[next] = request.valid[row];
      found[row] = {&batch, next++};
    }
  }
  std::erase_if(found, [](const RecordBatch::RowOf& row) { return row.first == nullptr; });
  auto joined = RecordBatch::gather(found);
  joined->set_source_starts(starts_);
  return joined;
}

std::shared_ptr<const RecordBatch> JoinedSource::read_one(std::uint64_t record) const {
  if (record >= record_count_) throw_no_such("Record", std::to_string(record), record_count_);
  const std::size_t source = source_of(record);
  return renumbered(sources_[source]->read_one(record - start(source)), source);
}

AnnouncedRows JoinedSource::announce(std::span<const std::int64_t> records, ReadAhead& read_ahead,
                                     std::uint64_t epoch) const {
  AnnouncedRows all;
  const std::vector<SourceRows> parts = divide(records);
  for (std::size_t source = 0; source < parts.size(); ++source) {
    if (parts[source].rows.empty()) continue;
    AnnouncedRows announced = sources_[source]->announce(parts[source].records, read_ahead, epoch);
    all.bytes += announced.bytes;
    for (auto& each : announced.files) all.files.push_back(std::move(each));
  }
  return all;
}

RecordSource::Range JoinedSource::read_range(std::uint64_t begin, std::uint64_t end,
                                             bool is_announced) const {
  if (begin >= record_count_) return {std::make_shared<const RecordBatch>(), {}, record_count_};
  const std::size_t source = source_of(begin);
  const std::uint64_t first = start(source);
  Range range = sources_[source]->read_range(
      begin - first, std::min(end - first, sources_[source]->record_count()), is_announced);
  range.batch = renumbered(std::move(range.batch), source);
  range.next += first;
  return range;
}

std::uint64_t JoinedSource::range_end(std::uint64_t begin, std::uint64_t target_bytes,
                                      std::uint64_t max_records) const {
  if (begin >= record_count_) return record_count_;
  const std::size_t source = source_of(begin);
  return start(source) +
         sources_[source]->range_end(begin - start(source), target_bytes, max_records);
}

std::vector<SkippedBytes> JoinedSource::skipped() const {
  std::vector<SkippedBytes> all;
  for (const auto& each : sources_) {
    for (SkippedBytes& skipped : each->skipped()) all.push_back(std::move(skipped));
  }
  return all;
}

}  // namespace tfrfast
