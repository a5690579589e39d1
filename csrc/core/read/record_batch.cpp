#include "core/read/record_batch.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "core/base/memory.h"

namespace tfrfast {
namespace {

// The numbers of a row, packed: its offset, its record number, and whether it is valid.
struct RowNumbers {
  std::uint8_t bytes[2 * sizeof(std::int64_t) + sizeof(bool)];
};

}  // namespace

RecordBatch::RecordBatch(std::size_t rows)
    : rows_(rows), numbers_(bytes_for<RowNumbers>(rows) + sizeof(std::int64_t)) {
  offsets()[0] = 0;
  std::fill_n(valid(), rows, true);
}

const std::int64_t* RecordBatch::offsets_to_show() const {
  if (shown_offsets_.data() == nullptr) {
    PooledBuffer copy((rows_ + 1) * sizeof(std::int64_t));
    std::copy_n(offsets(), rows_ + 1, copy.as<std::int64_t>());
    shown_offsets_ = std::move(copy);
  }
  return shown_offsets_.as<std::int64_t>();
}

std::shared_ptr<RecordBatch> RecordBatch::gather(std::span<const RowOf> rows) {
  auto gathered = std::make_shared<RecordBatch>(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& [batch, row] = rows[i];
    const auto bytes = static_cast<std::int64_t>((*batch)[row].size());
    if (__builtin_add_overflow(gathered->offsets()[i], bytes, &gathered->offsets()[i + 1])) {
      throw std::bad_alloc();
    }
    gathered->indices()[i] = batch->indices()[row];
    gathered->valid()[i] = batch->is_real(row);
  }
  gathered->allocate_data();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::span<const std::uint8_t> payload = (*rows[i].first)[rows[i].second];
    if (payload.empty()) continue;
    std::memcpy(gathered->data() + gathered->offsets()[i], payload.data(), payload.size());
  }
  return gathered;
}

std::shared_ptr<RecordBatch> RecordBatch::rows(std::span<const std::int64_t> rows) const {
  std::vector<RowOf> chosen;
  chosen.reserve(rows.size());
  for (const std::int64_t row : rows) chosen.emplace_back(this, static_cast<std::size_t>(row));
  auto batch = gather(chosen);
  batch->set_source_starts(source_starts_);
  return batch;
}

void RecordBatch::remove_rows(const std::vector<bool>& marked) {
  const auto left = static_cast<std::size_t>(std::count(marked.begin(), marked.end(), false));
  RecordBatch kept(left);
  std::size_t row = 0;
  for (std::size_t from = 0; from < rows_; ++from) {
    if (marked[from]) continue;
    const std::span<const std::uint8_t> payload = (*this)[from];
    // Payloads only move towards the front.
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
