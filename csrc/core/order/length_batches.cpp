#include "core/order/length_batches.h"

#include <algorithm>
#include <utility>

#include "core/order/permutation.h"
#include "core/order/ranges.h"
#include "core/order/siphash.h"

namespace tfrfast {
namespace {

std::int64_t batches_of(const std::vector<LengthBatches::Bucket>& buckets) {
  std::int64_t batches = 0;
  for (const LengthBatches::Bucket& bucket : buckets) {
    check_range("the records of a bucket", bucket.records, 0, kMaxPermutationSize);
    check_range("the rows of a bucket's batches", bucket.rows, 1, (std::int64_t{1} << 31) - 1);
    batches += (bucket.records + bucket.rows - 1) / bucket.rows;
    check_range("the number of batches", batches, 0, kMaxPermutationSize);
  }
  return batches;
}

}  // namespace

// Does not own the LengthBatches.
class LengthEpoch final : public EpochOrder {
 public:
  LengthEpoch(const LengthBatches& order, std::uint64_t seed, std::uint64_t epoch)
      : order_(&order), batches_(order.positions(), derive_key(KeyPurpose::batches, seed, epoch)) {
    const SipKey key = derive_key(KeyPurpose::buckets, seed, epoch);
    in_buckets_.reserve(order.buckets_.size());
    for (std::size_t bucket = 0; bucket < order.buckets_.size(); ++bucket) {
      in_buckets_.emplace_back(order.buckets_[bucket].records,
                               SipKey{siphash(key, {bucket, 0}), siphash(key, {bucket, 1})});
    }
  }

  // Writes the first record of each batch.
  void evaluate(const std::int64_t* positions, std::size_t count,
                std::int64_t* out) const override {
    for (std::size_t i = 0; i < count; ++i) {
      const BucketBatch batch = batch_at(positions[i]);
      out[i] = member(batch.bucket, in_buckets_[batch.bucket].at(batch.begin));
    }
  }

  void add_rows(std::span<const std::int64_t> positions, std::uint32_t first_row,
                std::vector<PackedRecord>& rows) const override {
    std::vector<std::int64_t> numbers;
    for (const std::int64_t position : positions) {
      const BucketBatch batch = batch_at(position);
      numbers.resize(static_cast<std::size_t>(batch.rows));
      in_buckets_[batch.bucket].evaluate_range(batch.begin, numbers.size(), numbers.data());
      const std::size_t begin = rows.size();
      rows.resize(begin + numbers.size(), {.row = first_row});
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        rows[begin + i].record = member(batch.bucket, numbers[i]);
      }
      ++first_row;
    }
  }

 private:
  struct BucketBatch {
    std::size_t bucket = 0;
    std::int64_t begin = 0;  // in the bucket's order
    std::int64_t rows = 0;
  };

  BucketBatch batch_at(std::int64_t position) const noexcept {
    const std::int64_t number = batches_.at(position);
    const std::vector<std::int64_t>& firsts = order_->first_batches_;
    // The last bucket that begins there: buckets before it may be empty.
    const auto bucket = static_cast<std::size_t>(
        std::upper_bound(firsts.begin(), firsts.end(), number) - firsts.begin() - 1);
    const LengthBatches::Bucket& shape = order_->buckets_[bucket];
    const std::int64_t begin = (number - firsts[bucket]) * shape.rows;
    return {bucket, begin, std::min(shape.rows, shape.records - begin)};
  }

  std::int64_t member(std::size_t bucket, std::int64_t number) const noexcept {
    return order_->members_[static_cast<std::size_t>(order_->first_members_[bucket] + number)];
  }

  const LengthBatches* order_;
  Permutation batches_;
  std::vector<Permutation> in_buckets_;
};

struct LengthBatches::Sorted {
  std::vector<Bucket> buckets;
  CompactNumbers members;
};

// The limit of each bucket is a tenth larger than that of the bucket before.
LengthBatches::Sorted LengthBatches::sort(const CountedRecords& counted, std::int64_t tokens) {
  check_range("tokens", tokens, 1, (std::int64_t{1} << 31) - 1);
  check_range("the number of tables of lengths", counted.tables.size(), 1, 1);
  counted.check();
  std::vector<std::int64_t> bounds = {1};
  while (bounds.back() < tokens) {
    bounds.push_back(std::max(bounds.back() + 1, bounds.back() * 11 / 10));
  }
  const auto length_of = [&](std::size_t i) {
    return std::max<std::int64_t>(counted.length(counted.record(i)), 1);
  };
  const auto bucket_of = [&](std::int64_t length) {
    return static_cast<std::size_t>(std::lower_bound(bounds.begin(), bounds.end(), length) -
                                    bounds.begin());
  };
  std::vector<std::size_t> counts(bounds.size());
  std::vector<std::int64_t> longest(bounds.size());
  for (std::size_t i = 0; i < counted.count(); ++i) {
    const std::int64_t length = length_of(i);
    if (length > tokens) {
      const std::string limit = std::to_string(tokens);
      throw Error(ErrorKind::invalid,
                  "Record " + std::to_string(counted.first + counted.record(i)) +
                      " has a length of " + std::to_string(length) + ", and ByTokens allows " +
                      limit + ". Allow more, or give lengths=numpy.minimum(lengths, " + limit +
                      ") if you cut records off there.");
    }
    const std::size_t bucket = bucket_of(length);
    ++counts[bucket];
    longest[bucket] = std::max(longest[bucket], length);
  }
  Sorted sorted;
  std::vector<std::size_t> next;
  std::size_t all = 0;
  for (std::size_t b = 0; b < bounds.size(); ++b) {
    next.push_back(all);
    all += counts[b];
    if (counts[b] == 0) continue;
    sorted.buckets.push_back({static_cast<std::int64_t>(counts[b]), tokens / longest[b]});
  }
  sorted.members = CompactNumbers(all, counted.records);
  for (std::size_t i = 0; i < all; ++i) {
    sorted.members.set(next[bucket_of(length_of(i))]++, counted.record(i));
  }
  return sorted;
}

LengthBatches::LengthBatches(CountedRecords counted, std::int64_t tokens)
    : LengthBatches(counted, tokens, sort(counted, tokens)) {}

LengthBatches::LengthBatches(CountedRecords counted, std::int64_t tokens, Sorted sorted)
    : CountedOrder(kName, batches_of(sorted.buckets), std::move(counted)),
      tokens_(tokens),
      buckets_(std::move(sorted.buckets)),
      members_(std::move(sorted.members)) {
  std::int64_t all = 0;
  first_batches_.push_back(0);
  for (const Bucket& bucket : buckets_) {
    first_members_.push_back(all);
    all += bucket.records;
    first_batches_.push_back(first_batches_.back() +
                             (bucket.records + bucket.rows - 1) / bucket.rows);
    if (bucket.records > 0) max_rows_ = std::max(max_rows_, std::min(bucket.rows, bucket.records));
  }
}

std::unique_ptr<const EpochOrder> LengthBatches::of_epoch(std::uint64_t seed,
                                                          std::uint64_t epoch) const {
  return std::make_unique<const LengthEpoch>(*this, seed, epoch);
}

std::string LengthBatches::describe_shuffle(std::uint64_t seed) const {
  return "shuffle=lengths batches=" + std::to_string(positions()) + " seed=" + std::to_string(seed);
}

std::string LengthBatches::describe_records() const {
  SipHash hash(SipKey{});
  for (const Bucket& bucket : buckets_) {
    hash.add(static_cast<std::uint64_t>(bucket.records));
    hash.add(static_cast<std::uint64_t>(bucket.rows));
  }
  for (std::size_t i = 0; i < members_.size(); ++i) {
    hash.add(static_cast<std::uint64_t>(members_[i]));
  }
  return Order::describe_records() + " buckets=" + std::to_string(buckets_.size()) + ":" +
         std::to_string(hash.finish());
}

std::shared_ptr<const Order> LengthBatches::decode(Decoder& decoder) {
  return decode_with(
      kName, decoder, [](Decoder& options) { return options.integer(); },
      [](CountedRecords counted, std::int64_t tokens) {
        return std::make_shared<const LengthBatches>(std::move(counted), tokens);
      });
}

}  // namespace tfrfast
