#include "tensorflow/share.h"

#include <algorithm>

#include "core/base/numbering.h"
#include "core/base/parallel.h"
#include "core/order/permutation.h"

namespace tfrfast::tensorflow {
namespace {

// The number of remote shards opened at the same time, ahead of their turns.
constexpr unsigned kOpenedAtOnce = 8;
// At most this many shards are announced before their turn, however small the shards are.
constexpr std::size_t kShardsAhead = 64;

// The same files among numbers below `end`, with limits on the first file and the stride, so that
// calculations cannot overflow.
Progression bounded(Files files, std::int64_t end) {
  return {std::min(files.first, end), std::min(files.stride, std::max<std::int64_t>(end, 1)),
          kEndless};
}

// Whether all records are wanted, whatever their number.
bool wants_all(const Progression& wanted) noexcept {
  return wanted.first == 0 && wanted.stride == 1 && wanted.count >= kMaxPermutationSize;
}

// The last of these numbers, limited to kEndless. -1 if there are none.
std::int64_t last_of(const Progression& numbers) noexcept {
  const __int128 last = numbers.first + static_cast<__int128>(numbers.stride) * (numbers.count - 1);
  return numbers.count == 0 ? -1 : static_cast<std::int64_t>(std::min<__int128>(last, kEndless));
}

// An upper bound of the records in any shard.
std::int64_t max_record_count(const Source& source) {
  if (!source.spec().planned) return kEndless;
  std::uint64_t count = 0;
  for (const ShardSpec& shard : source.spec().shards) count = std::max(count, shard.record_count);
  return static_cast<std::int64_t>(count);
}

}  // namespace

Share::Share(std::shared_ptr<const Source> source, Files files)
    : source_(std::move(source)), files_(files) {
  const Files every;
  const auto shard_count = static_cast<std::int64_t>(source_->shard_count());
  const bool by_file = files.stride <= shard_count;
  shards_ = bounded(by_file ? files : every, shard_count).below(shard_count);
  records_ = bounded(by_file ? every : files, max_record_count(*source_));
  for (std::int64_t turn = 0; turn < shards_.count; ++turn) {
    const auto each = static_cast<std::size_t>(shards_.at(turn));
    if (source_->spec().planned) {
      const auto records = static_cast<std::int64_t>(source_->spec().shards[each].record_count);
      first_records_.push_back(first_records_.back() + records_.below(records).count);
    } else {
      first_blocks_.push_back(first_blocks_.back() + source_->block_count(each));
    }
  }
}

Share::Place Share::place(const std::vector<std::int64_t>& firsts, std::int64_t number) {
  const auto after = std::upper_bound(firsts.begin(), firsts.end(), number);
  return {static_cast<std::size_t>(after - firsts.begin()) - 1, number - *(after - 1)};
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
    const Place at = place(first_records_, record);
    record = static_cast<std::int64_t>(source_->shard_set().first_record(shard(at.turn))) +
             records_.at(at.within);
  }
  return records;
}

Progression Share::in_shard(const Progression& wanted, std::int64_t before) const noexcept {
  // Counts as if the records before the shard belonged to the shard, so that damage before the
  // first wanted record is found.
  __int128 first = records_.first + static_cast<__int128>(records_.stride) *
                                        (static_cast<__int128>(wanted.first) - before);
  const __int128 stride = static_cast<__int128>(records_.stride) * wanted.stride;
  std::int64_t count = wanted.count;
  constexpr __int128 most = kEndless / 2;
  if (first < -most || stride > most) {  // no shard has two records so far apart
    const __int128 passed = first < 0 ? (stride - 1 - first) / stride : 0;
    first += passed * stride;
    count = passed < count ? 1 : 0;
  }
  return {static_cast<std::int64_t>(std::min(first, most)),
          static_cast<std::int64_t>(std::min(stride, most)), count};
}

void Share::begin() const noexcept {
  for (std::int64_t turn = 0; turn < shards_.count; ++turn) {
    source_->begin(shard(static_cast<std::size_t>(turn)));
  }
}

std::int64_t Share::records_before(std::size_t turn) const {
  const std::lock_guard lock(counts_->mutex);
  std::vector<std::int64_t>& firsts = counts_->first_records;
  while (firsts.size() <= turn) {
    const std::int64_t count = source_->record_count(shard(firsts.size() - 1));
    firsts.push_back(firsts.back() + records_.below(count).count);
  }
  return firsts[turn];
}

std::optional<std::int64_t> Share::known_before(std::size_t turn) const {
  const std::lock_guard lock(counts_->mutex);
  std::vector<std::int64_t>& firsts = counts_->first_records;
  while (firsts.size() <= turn) {
    const auto index = source_->index_at_hand(shard(firsts.size() - 1));
    if (index == nullptr) return std::nullopt;
    const auto count = static_cast<std::int64_t>(index->record_count());
    firsts.push_back(firsts.back() + records_.below(count).count);
  }
  return firsts[turn];
}

std::pair<std::int64_t, std::int64_t> Share::blocks_of_file(const Progression& wanted,
                                                            std::int64_t turn) const {
  if (turn < 0 || turn >= shards_.count) {
    throw_no_such("File", std::to_string(turn), static_cast<std::uint64_t>(shards_.count));
  }
  const auto at = static_cast<std::size_t>(turn);
  source_->begin(shard(at));
  const std::pair<std::int64_t, std::int64_t> all = {first_blocks_[at], first_blocks_[at + 1]};
  if (wants_all(wanted)) return all;
  const std::optional<std::int64_t> before = known_before(at);
  const auto index = before ? source_->index_at_hand(shard(at)) : nullptr;
  if (index == nullptr || index->record_count() == 0) return all;
  const auto count = static_cast<std::int64_t>(index->record_count());
  const Progression here = in_shard(wanted, *before);
  // The beginning does not depend on indexes, because a checkpoint may count from the beginning. A
  // reader of later records reports damage after the last record.
  if (here.first > count || last_of(here) < 0) return {all.first, all.first};
  if (last_of(here) >= count) return all;
  const auto last = static_cast<std::uint64_t>(last_of(here));
  return {all.first,
          std::min(all.second, all.first + source_->block_of(shard(at), *index, last) + 1)};
}

// Announces that many bytes of the shards after shard `turn`.
void Share::announce_after(std::size_t turn, const Progression& wanted, std::uint64_t bytes) const {
  const std::size_t count =
      std::min(static_cast<std::size_t>(shards_.count), turn + 1 + kShardsAhead);
  if (!wants_all(wanted)) {  // each shard tells how far the wanted records reach
    while (bytes > 0 && ++turn < count) {
      const std::optional<std::int64_t> before = known_before(turn);
      if (!before) return;
      bytes = source_->announce_beginning(shard(turn), in_shard(wanted, *before), bytes);
    }
    return;
  }
  std::vector<std::pair<std::size_t, std::uint64_t>> beginnings;
  while (bytes > 0 && ++turn < count) {
    beginnings.emplace_back(shard(turn), bytes);
    bytes -= std::min(bytes, source_->file_bytes(shard(turn)));
  }
  // Opening a shard may take several requests.
  parallel_for(beginnings.size(), kOpenedAtOnce, [&](std::size_t i) {
    source_->announce_beginning(beginnings[i].first, in_shard(wanted, 0), beginnings[i].second);
  });
}

Found Share::find(const Progression& wanted, std::int64_t begin, std::int64_t end) const {
  if (begin < 0 || end < begin || end > block_count()) {
    throw_no_such("Block", std::to_string(end - 1), static_cast<std::uint64_t>(block_count()));
  }
  Found found;
  while (begin < end) {
    const Place at = place(first_blocks_, begin);
    const std::int64_t here = std::min(end, first_blocks_[at.turn + 1]) - begin;
    const Progression in_it = in_shard(wanted, wants_all(wanted) ? 0 : records_before(at.turn));
    if (in_it.count > 0 && last_of(in_it) >= 0) {
      const auto bytes_before = static_cast<std::uint64_t>(first_blocks_[at.turn]) * kBlockBytes;
      const bool is_last = at.turn + 1 >= static_cast<std::size_t>(shards_.count);
      const auto next =
          is_last || !wants_all(wanted) ? std::nullopt : std::optional(shard(at.turn + 1));
      const std::uint64_t beyond = source_->find(shard(at.turn), at.within, at.within + here, in_it,
                                                 bytes_before, next, found);
      announce_after(at.turn, wanted, beyond);
    }
    begin += here;
  }
  return found;
}

std::shared_ptr<const Share> ShareHolder::open(std::string_view text, Files files, bool look) {
  const std::shared_ptr<const Source> source = sources_.open(text, look);
  if (std::shared_ptr<const void> use = Source::use(source); use != nullptr) {
    const std::lock_guard lock(mutex_);
    use_.swap(use);
  }
  return shares_.get(
      [&](const Share& last) { return last.source() == source && last.files() == files; },
      [&] { return Share(source, files); });
}

void ShareHolder::come_to(const std::shared_ptr<const Share>& share,
                          const std::shared_ptr<const Sequence>& sequence, std::string_view text,
                          std::uint64_t seed, std::int64_t step) {
  place_.come_to(share->source(), step, [&] {
    std::string name(head_of(text));
    for (const auto number :
         {static_cast<std::int64_t>(seed), share->files().first, share->files().stride}) {
      name.append(" ").append(std::to_string(number));
    }
    return Course{share->source(), std::move(name), share->batch_count(*sequence),
                  [share, sequence, seed](std::int64_t each) {
                    return share->records_of_batch(*sequence, seed, each);
                  }};
  });
}

}  // namespace tfrfast::tensorflow
