// A pass over records as an Arrow stream: the batches of a Loader in file order.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/arrow/c_data.h"
#include "core/arrow/data.h"
#include "core/arrow/field.h"
#include "core/load/loader.h"

namespace tfrfast {

struct ScanColumn {
  // The content of the column: the number of a feature in the schema, or one of these constants.
  static constexpr std::size_t kRecordNumber = ~std::size_t{0};
  static constexpr std::size_t kShard = kRecordNumber - 1;

  ArrowField field;
  std::size_t content = kRecordNumber;
};

struct ArrowScan {
  std::shared_ptr<const RecordSource> source;
  PlanOptions plan;
  std::shared_ptr<const FeatureSchema> features;
  std::vector<ScanColumn> columns;
  LoaderOptions loader;
  // Called about ten times a second on the thread that reads an exported stream. An exception
  // becomes the stream's error.
  std::function<void()> check = [] {};
};

// The first call of next() starts the threads and the reading. A stream owns everything that it
// needs, so the reader may be closed meanwhile. One thread at a time; the thread's WaitCheck may
// end a wait. A batch that cannot be read is an error, and the next call tries the batch again.
class ArrowScanStream {
 public:
  explicit ArrowScanStream(const ArrowScan& scan);  // throws Error(invalid)

  const ArrowField& field() const noexcept { return field_; }  // type of a batch
  bool next(ArrowData* out);                                   // false at the end

 private:
  ArrowData batch_data(LoadedBatch batch) const;
  ArrowData shards_of(std::span<const std::int64_t> numbers) const;
  const ArrowData* made_before(const ScanColumn& column,
                               const std::vector<ArrowData>& made) const noexcept;

  const std::shared_ptr<const RecordSource> source_;
  const std::vector<ScanColumn> columns_;
  const ArrowField field_;
  std::shared_ptr<const ArrowData> shard_names_;  // null if no column holds shards
  Loader loader_;
  std::shared_ptr<LoaderPass> pass_;
  bool ended_ = false;
};

// Exports a stream for the C interface. A batch may be released on any thread, at any time.
void export_scan(const ArrowScan& scan, ArrowArrayStream* out);  // throws Error(invalid)

}  // namespace tfrfast
