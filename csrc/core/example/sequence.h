// Decodes serialized tf.train.SequenceExamples to columns: context features as in an Example, and
// feature lists as steps. Accepts every record that TensorFlow's fast parser accepts, with the same
// values. TensorFlow's rules differ slightly from its rules for Examples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/pool.h"
#include "core/example/columns.h"
#include "core/example/complaint.h"
#include "core/example/schema.h"

namespace tfrfast {

// All rows' steps, end to end, as a ragged column with one row per step.
struct StepColumn {
  Column steps;
  std::size_t rows = 0;
  PooledBuffer row_splits;  // rows + 1 int64: where each row's steps start
};

struct SequenceColumns {
  std::vector<Column> context;
  std::vector<StepColumn> sequences;
};

// Decodes batch after batch, as BatchDecoder does. One thread at a time.
class SequenceDecoder {
 public:
  // In a sequence feature with a padded layout, every step must have the shape. Sequence features
  // of every layout are returned as StepColumns. Throws `invalid` for a padded context feature.
  SequenceDecoder(std::shared_ptr<const FeatureSchema> context,
                  std::shared_ptr<const FeatureSchema> sequences, FindOrigin find_origin = {});

  void begin(std::size_t rows);
  // Like BatchDecoder::decode().
  void decode(std::span<const WireBytes> records, std::span<const std::int64_t> record_numbers);
  std::size_t rows_decoded() const noexcept { return next_row_; }
  SequenceColumns finish();

 private:
  struct FoundValue {
    WireBytes value;
    bool present = false;
  };

  void collect(WireBytes record, const RecordPlace& place);
  void put_context(std::uint32_t slot, WireBytes record, const RecordPlace& place);
  void put_steps(std::uint32_t slot, WireBytes record, const RecordPlace& place);

  std::shared_ptr<const FeatureSchema> context_;
  std::shared_ptr<const FeatureSchema> sequences_;
  FindOrigin find_origin_;
  std::vector<ColumnBuilder> context_columns_;
  std::vector<CompiledFeature> step_features_;  // the sequence features, with a ragged layout
  std::vector<ColumnBuilder> step_columns_;
  std::vector<std::size_t> step_counts_;
  std::vector<PooledBuffer> row_splits_;
  std::vector<FoundValue> context_entries_;
  std::vector<FoundValue> sequence_entries_;
  std::size_t rows_ = 0;
  std::size_t next_row_ = 0;
};

}  // namespace tfrfast
