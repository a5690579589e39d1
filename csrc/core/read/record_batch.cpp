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

std::shared_ptr<RecordBatch> RecordBatch::rows(std::span<const std::int64_t> rows) const {
  auto chosen = std::make_shared<RecordBatch>(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<std::size_t>(rows[i]);
    const auto bytes = static_cast<std::int64_t>((*this)[row].size());
    if (__builtin_add_overflow(chosen->offsets()[i], bytes, &chosen->offsets()[i + 1])) {
      throw std::bad_alloc();
    }
    chosen->indices()[i] = indices()[row];
    chosen->valid()[i] = is_real(row);
  }
  chosen->set_source_starts(source_starts_);
  chosen->allocate_data();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::span<const std::uint8_t> payload = (*this)[static_cast<std::size_t>(rows[i])];
    if (payload.empty()) continue;
    std::memcpy(chosen->data() + chosen->offsets()[i], payload.data(), payload.size());
  }
  return chosen;
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
