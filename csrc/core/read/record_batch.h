// Payloads of many records, side by side in memory of ours.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/pool.h"

namespace tfrfast {

// Filled by whoever makes it, then shared as `const` and safe from many threads. From then on the
// offsets never change. Python may write into data(), indices() and valid() at any time, so nothing
// may rely on what they hold.
class RecordBatch {
 public:
  RecordBatch() : RecordBatch(0) {}
  // Room for `rows` rows; every row is valid until said otherwise, all else is undefined.
  explicit RecordBatch(std::size_t rows);

  std::size_t size() const noexcept { return rows_; }
  std::span<const std::uint8_t> operator[](std::size_t row) const noexcept {
    return {data_.data() + offsets()[row],
            static_cast<std::size_t>(offsets()[row + 1] - offsets()[row])};
  }

  std::uint8_t* data() const noexcept { return data_.data(); }
  std::int64_t* offsets() const noexcept { return numbers_.as<std::int64_t>(); }  // rows + 1
  std::int64_t* indices() const noexcept { return offsets() + rows_ + 1; }        // record numbers
  bool* valid() const noexcept {  // false marks padding
    return reinterpret_cast<bool*>(indices() + rows_);
  }
  // Whether a row is no padding. Python may have put any byte there.
  bool is_real(std::size_t row) const noexcept {
    return reinterpret_cast<const std::uint8_t*>(valid())[row] != 0;
  }
  std::size_t data_bytes() const noexcept { return static_cast<std::size_t>(offsets()[rows_]); }

  // Memory for as many bytes as the offsets, which are set by now, say; never null, so that nothing
  // may be copied there.
  void allocate_data() { data_ = PooledBuffer(std::max<std::size_t>(data_bytes(), 1)); }

  // A copy of the offsets, which nothing here reads: for code that may write into it in spite of
  // everything. The first call makes it. One thread at a time; it lives as long as the batch.
  const std::int64_t* offsets_to_show() const;

  // A batch of its own of these rows, in that order; each must be less than size().
  std::shared_ptr<RecordBatch> rows(std::span<const std::int64_t> rows) const;

  // Leaves out the rows that are marked, closing the gaps.
  void remove_rows(const std::vector<bool>& marked);
  // Leaves out the rows from `rows` on.
  void truncate(std::size_t rows);

 private:
  std::size_t rows_;
  PooledBuffer numbers_;
  PooledBuffer data_;
  mutable PooledBuffer shown_offsets_;  // empty until they are asked for
};

}  // namespace tfrfast
