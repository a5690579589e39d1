// A worker's task for one step: turns record numbers into a batch.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/example/decode.h"
#include "core/load/batch_times.h"
#include "core/order/plan.h"
#include "core/read/record_source.h"

namespace tfrfast {

// The records or, with a feature schema, their columns.
struct LoadedBatch {
  std::shared_ptr<RecordBatch> records;  // null if decoded
  std::vector<Column> columns;           // if decoded, in the schema's order
  PooledBuffer indices;                  // if decoded: `rows` int64 record numbers
  PooledBuffer valid;                    // if decoded: `rows` bool
  std::size_t rows = 0;
  std::size_t real_rows = 0;  // rows without padding
  std::uint64_t payload_bytes = 0;
  BatchTimes times;
};

// One thread at a time. Keeps a decoder, which adapts from batch to batch.
class BatchWork {
 public:
  // If `features` is null, batches hold records. With `tracks_presence`, columns say which rows
  // have the feature.
  BatchWork(std::shared_ptr<const RecordSource> source,
            std::shared_ptr<const FeatureSchema> features, bool tracks_presence = false);

  // The caller keeps the records' announcements alive. `draws` has a random number for each row if
  // images are cropped or mirrored at random. Throws Error, or ReadCancelled soon after another
  // thread sets `cancelled`.
  LoadedBatch load(const PlannedBatch& planned, const std::atomic<bool>& cancelled,
                   std::uint64_t epoch, std::span<const std::uint64_t> draws);

  // The time that the last load() took to read, if it is to be measured.
  void time_reading(bool yes) noexcept { is_timed_ = yes; }
  std::int64_t read_ns() const noexcept { return read_ns_; }

 private:
  template <class Act>
  void timed(const Act& act) {
    const std::int64_t began = is_timed_ ? now_ns() : 0;
    act();
    if (is_timed_) read_ns_ += now_ns() - began;
  }
  std::shared_ptr<const RecordBatch> read(const ReadRequest& request);
  LoadedBatch decode(const PlannedBatch& planned, const std::atomic<bool>& cancelled,
                     std::uint64_t epoch, std::span<const std::uint64_t> draws);
  bool decode_in_place(std::int64_t record, std::uint64_t draw, std::uint64_t batch_bytes,
                       std::uint64_t& payload_bytes);

  std::shared_ptr<const RecordSource> source_;
  bool is_timed_ = false;
  std::int64_t read_ns_ = 0;
  std::size_t piece_rows_ = 1;
  const Reader* reads_in_place_ = nullptr;  // null unless records are read in place
  std::unique_ptr<BatchDecoder> decoder_;   // null if batches hold records
  std::vector<WireBytes> wires_;
  std::vector<std::uint64_t> piece_draws_;
  std::vector<PackedRecord> piece_packed_;
};

}  // namespace tfrfast
