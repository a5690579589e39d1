#include "core/read/record_batch.h"

#include <algorithm>
#include <cstring>

namespace tfrfast {

RecordBatch::RecordBatch(std::size_t rows)
    : rows_(rows), numbers_((2 * rows + 1) * sizeof(std::int64_t) + rows) {
  offsets()[0] = 0;
  std::fill_n(valid(), rows, true);
}

void RecordBatch::remove_rows(const std::vector<bool>& marked) {
  const auto left = static_cast<std::size_t>(std::count(marked.begin(), marked.end(), false));
  RecordBatch kept(left);
  std::size_t row = 0;
  for (std::size_t from = 0; from < rows_; ++from) {
    if (marked[from]) continue;
    const std::span<const std::uint8_t> payload = (*this)[from];
    // Payloads only ever move towards the front.
    if (!payload.empty())
      std::memmove(data() + kept.offsets()[row], payload.data(), payload.size());
    kept.indices()[row] = indices()[from];
    kept.valid()[row] = valid()[from];
    kept.offsets()[row + 1] = kept.offsets()[row] + static_cast<std::int64_t>(payload.size());
    ++row;
  }
  kept.data_ = std::move(data_);
  *this = std::move(kept);
}

void RecordBatch::truncate(std::size_t rows) {
  std::vector<bool> marked(rows_, false);
  std::fill(marked.begin() + static_cast<std::ptrdiff_t>(rows), marked.end(), true);
  remove_rows(marked);
}

}  // namespace tfrfast
