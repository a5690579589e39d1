// A worker's work for one step: record numbers in, a batch out.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/example/decode.h"
#include "core/read/record_source.h"

namespace tfrfast {

// The records or, with a feature schema, their columns.
struct LoadedBatch {
  std::shared_ptr<RecordBatch> records;  // null if decoded
  std::vector<Column> columns;           // if decoded, in the schema's order
  PooledBuffer indices;                  // if decoded: `rows` int64 record numbers
  PooledBuffer valid;                    // if decoded: `rows` bool
  std::size_t rows = 0;
  std::size_t real_rows = 0;  // without padding
  std::uint64_t payload_bytes = 0;
};

// For one thread. Keeps a decoder, which learns from batch to batch.
class BatchWork {
 public:
  // `features` may be null: then batches are records. With `tracks_presence`, columns say which
  // rows have the feature.
  BatchWork(std::shared_ptr<const RecordSource> source,
            std::shared_ptr<const FeatureSchema> features, bool tracks_presence = false);

  // The caller holds what was announced of the records. Throws Error, or ReadCancelled soon after
  // `cancelled` was set.
  LoadedBatch load(std::span<const std::int64_t> records, const bool* valid,
                   const std::atomic<bool>& cancelled);

 private:
  LoadedBatch decode(std::span<const std::int64_t> records, const bool* valid,
                     const std::atomic<bool>& cancelled);
  bool decode_in_place(std::int64_t record, std::uint64_t batch_bytes,
                       std::uint64_t& payload_bytes);

  std::shared_ptr<const RecordSource> source_;
  std::size_t piece_rows_ = 1;
  const Reader* reads_in_place_ = nullptr;  // the source, if its records are read so
  std::unique_ptr<BatchDecoder> decoder_;   // null if batches are records
  std::vector<WireBytes> wires_;
};

}  // namespace tfrfast
