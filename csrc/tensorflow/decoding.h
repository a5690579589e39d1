// What the kernels that decode keep from call to call: compiled descriptions, and decoders that
// have learnt the records' order.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/load/batch_work.h"
#include "tensorflow/feature_tensors.h"
#include "tensorflow/last_made.h"
#include "tensorflow/loading_plan.h"
#include "tensorflow/share.h"

namespace tfrfast::tensorflow {

// Workers that are not busy, all for the same source and features. A worker serves one call at a
// time. Safe from many threads.
template <class Worker>
class IdleWorkers {
 public:
  // Workers are made for `what`. Holding it keeps it alive, so no other object gets its address.
  template <class Make>
  std::unique_ptr<Worker> take(const std::vector<std::shared_ptr<const void>>& what,
                               const Make& make) {
    {
      const std::lock_guard lock(mutex_);
      if (what_ != what) {
        idle_.clear();
        what_ = what;
      }
      if (!idle_.empty()) {
        std::unique_ptr<Worker> worker = std::move(idle_.back());
        idle_.pop_back();
        return worker;
      }
    }
    return make();
  }
  void put_back(const std::vector<std::shared_ptr<const void>>& what,
                std::unique_ptr<Worker> worker) {
    const std::lock_guard lock(mutex_);
    if (what_ == what) idle_.push_back(std::move(worker));
  }

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<const void>> what_;
  std::vector<std::unique_ptr<Worker>> idle_;
};

// Columns of the good records, and what became of the others; see Records::error().
struct DecodedRows {
  std::vector<Column> columns;
  std::size_t rows = 0;
  std::string error;
};

// Decodes rows, one cache-sized piece after another. For one thread.
class RowDecoder {
 public:
  explicit RowDecoder(std::shared_ptr<const FeatureSchema> features);
  RowDecoder(const RowDecoder&) = delete;
  RowDecoder& operator=(const RowDecoder&) = delete;

  // Throws Error for a record that does not fit the features, and if memory cannot hold a piece.
  DecodedRows decode(std::span<const Row> rows, const ReadOptions& options);

 private:
  bool decode_in_place(const Row& row, const ReadOptions& options, std::uint64_t batch_bytes);
  static std::vector<BadRow> read_piece(std::span<const Row> rows, const ReadOptions& options,
                                        RecordBatch& piece);
  void decode_piece(std::span<const Row> rows, const ReadOptions& options, std::size_t first,
                    std::vector<Trouble>& troubles);

  BatchDecoder decoder_;
  std::vector<const Row*> good_;  // of this batch
  std::vector<WireBytes> wires_;
  std::vector<std::int64_t> records_;
};

class DecodingKernel {
 public:
  std::shared_ptr<const Share> share(std::string_view source, Files files) {
    return shares_.open(source, files);
  }
  std::shared_ptr<const Sequence> sequence(std::string_view encoded) {
    return shares_.sequence(encoded);
  }
  std::shared_ptr<const FeatureSchema> features(std::string_view encoded) {
    return features_.get(encoded);
  }
  std::shared_ptr<const LoadingPlan> plan(std::string_view encoded, std::int64_t epoch,
                                          std::int64_t key);

  // See ShareHolder and PlaceHolder.
  ShareHolder& shares() noexcept { return shares_; }
  // `steps` is how many steps the iteration has.
  void come_to(const std::shared_ptr<const Source>& source,
               const std::shared_ptr<const LoadingPlan>& plan, std::int64_t step,
               std::int64_t steps);

  // Reads, verifies and decodes, one cache-sized piece after another. Throws Error.
  LoadedBatch load(const std::shared_ptr<const Source>& source,
                   const std::shared_ptr<const FeatureSchema>& features,
                   std::span<const std::int64_t> records, const bool* valid);

  // Reads and decodes rows of `source`. Damaged ones are left out. What does not fit the features
  // fails the whole batch, as TensorFlow's parser does.
  DecodedRows decode(const std::shared_ptr<const Source>& source,
                     const std::shared_ptr<const FeatureSchema>& features,
                     std::span<const Row> rows);
  DecodedRows failed(const std::shared_ptr<const FeatureSchema>& features, const Error& error);

  // Decodes records that have been read. Without `record_numbers`, errors name rows.
  std::vector<Column> decode(const std::shared_ptr<const FeatureSchema>& features,
                             std::span<const WireBytes> wires,
                             std::span<const std::int64_t> record_numbers);

 private:
  ShareHolder shares_;
  LastDecoded<FeatureSchema> features_;
  LastMade<LoadingPlan> plans_;
  IdleWorkers<BatchWork> works_;
  IdleWorkers<BatchDecoder> decoders_;
  IdleWorkers<RowDecoder> row_decoders_;
};

}  // namespace tfrfast::tensorflow
