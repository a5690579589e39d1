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

  std::int64_t rows_at(std::int64_t position) const override { return batch_at(position).rows; }

  void write_rows(std::int64_t position, std::int64_t* out) const override {
    const BucketBatch batch = batch_at(position);
    in_buckets_[batch.bucket].evaluate_range(batch.begin, static_cast<std::size_t>(batch.rows),
                                             out);
    for (std::int64_t i = 0; i < batch.rows; ++i) out[i] = member(batch.bucket, out[i]);
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

LengthBatches::LengthBatches(std::vector<Bucket> buckets, std::vector<std::int64_t> members,
                             std::int64_t records)
    : Order(batches_of(buckets), records),
      buckets_(std::move(buckets)),
      members_(std::move(members)) {
  std::int64_t all = 0;
  first_batches_.push_back(0);
  for (const Bucket& bucket : buckets_) {
    first_members_.push_back(all);
    all += bucket.records;
    check_range("the records of all buckets", all, 0, static_cast<std::int64_t>(members_.size()));
    first_batches_.push_back(first_batches_.back() +
                             (bucket.records + bucket.rows - 1) / bucket.rows);
    if (bucket.records > 0) max_rows_ = std::max(max_rows_, std::min(bucket.rows, bucket.records));
  }
  if (all != static_cast<std::int64_t>(members_.size())) {
    refuse("the records of all buckets", all, std::to_string(members_.size()));
  }
  for (const std::int64_t member : members_) check_range("a record", member, 0, records - 1);
}

std::unique_ptr<const EpochOrder> LengthBatches::of_epoch(std::uint64_t seed,
                                                          std::uint64_t epoch) const {
  return std::make_unique<const LengthEpoch>(*this, seed, epoch);
}

std::shared_ptr<const Order> LengthBatches::over(std::int64_t records) const {
  return std::make_shared<const LengthBatches>(buckets_, members_, records);
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
  for (const std::int64_t member : members_) hash.add(static_cast<std::uint64_t>(member));
  return Order::describe_records() + " buckets=" + std::to_string(buckets_.size()) + ":" +
         std::to_string(hash.finish());
}

void LengthBatches::encode(Encoder& encoder) const {
  encoder.integer(records());
  encoder.number(buckets_.size());
  for (const Bucket& bucket : buckets_) {
    encoder.integer(bucket.records);
    encoder.integer(bucket.rows);
  }
  encoder.integers(members_);
}

std::shared_ptr<const Order> LengthBatches::decode(Decoder& decoder) {
  const std::int64_t records = decoder.integer();
  std::vector<Bucket> buckets(decoder.count());
  for (Bucket& bucket : buckets) {
    bucket.records = decoder.integer();
    bucket.rows = decoder.integer();
  }
  return std::make_shared<const LengthBatches>(std::move(buckets), decoder.integers(), records);
}

}  // namespace tfrfast
