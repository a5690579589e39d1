// Keeps the decoding kernels' state from call to call: compiled descriptions, and decoders that
// remember the order of features.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/load/batch_work.h"
#include "tensorflow/feature_tensors.h"
#include "tensorflow/file_order.h"
#include "tensorflow/last_made.h"
#include "tensorflow/loading_plan.h"
#include "tensorflow/share.h"

namespace tfrfast::tensorflow {

// Idle workers for one source and one set of features. A worker serves one call at a time. Safe
// from many threads.
template <class Worker>
class IdleWorkers {
 public:
  // Workers are made for `what`. Holding `what` keeps its address from being reused.
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

// The columns of the good records, and the other records' errors; see Records::error().
struct DecodedRows {
  std::vector<Column> columns;
  std::size_t rows = 0;
  std::string error;
};

// Decodes rows in cache-sized pieces. One thread at a time.
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
  std::vector<const Row*> good_;  // of the current batch
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
  WalkHolder& walks() noexcept { return walks_; }
  // `steps` is the iteration's number of steps.
  void come_to(const std::shared_ptr<const Source>& source,
               const std::shared_ptr<const LoadingPlan>& plan, std::int64_t step,
               std::int64_t steps);

  // Reads, verifies and decodes in cache-sized pieces. Throws Error.
  LoadedBatch load(const std::shared_ptr<const Source>& source,
                   const std::shared_ptr<const FeatureSchema>& features,
                   std::span<const std::int64_t> records, const bool* valid,
                   std::span<const std::uint64_t> draws = {});

  // Reads and decodes rows of `source`. Leaves out damaged rows. As in TensorFlow's parser, a row
  // that does not fit the features fails the whole batch.
  DecodedRows decode(const std::shared_ptr<const Source>& source,
                     const std::shared_ptr<const FeatureSchema>& features,
                     std::span<const Row> rows);
  DecodedRows failed(const std::shared_ptr<const FeatureSchema>& features, const Error& error);

  // Decodes records in memory. Without `record_numbers`, errors name rows.
  std::vector<Column> decode(const std::shared_ptr<const FeatureSchema>& features,
                             std::span<const WireBytes> wires,
                             std::span<const std::int64_t> record_numbers);

 private:
  ShareHolder shares_;
  WalkHolder walks_;
  LastDecoded<FeatureSchema> features_;
  LastMade<LoadingPlan> plans_;
  IdleWorkers<BatchWork> works_;
  IdleWorkers<BatchDecoder> decoders_;
  IdleWorkers<RowDecoder> row_decoders_;
};

}  // namespace tfrfast::tensorflow
