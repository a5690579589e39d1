// Decodes SequenceExamples to columns with one row for each record, as Examples are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/example/columns.h"
#include "core/example/complaint.h"
#include "core/example/schema.h"
#include "core/example/sequence.h"

namespace tfrfast {

// The schema of context features and feature lists. A feature list becomes a ragged column, whose
// rows consist of steps. One thread at a time.
class SequenceRows {
 public:
  explicit SequenceRows(const FeatureSchema& schema, FindOrigin find_origin);

  // Like BatchDecoder's.
  void begin(std::size_t rows) { decoder_.begin(rows); }
  void decode(std::span<const WireBytes> records, std::span<const std::int64_t> record_numbers) {
    decoder_.decode(records, record_numbers);
  }
  std::size_t rows_decoded() const noexcept { return decoder_.rows_decoded(); }
  std::vector<Column> finish();

 private:
  std::vector<RecordPart> parts_;  // of each feature
  SequenceDecoder decoder_;
};

}  // namespace tfrfast
