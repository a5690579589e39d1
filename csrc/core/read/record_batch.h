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

// Filled by whoever makes it, then shared as `const`: immutable and safe from many threads.
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
  std::size_t data_bytes() const noexcept { return static_cast<std::size_t>(offsets()[rows_]); }

  // Memory for as many bytes as the offsets, which are set by now, say; never null, so that nothing
  // may be copied there.
  void allocate_data() { data_ = PooledBuffer(std::max<std::size_t>(data_bytes(), 1)); }

  // Leaves out the rows that are marked, closing the gaps.
  void remove_rows(const std::vector<bool>& marked);
  // Leaves out the rows from `rows` on.
  void truncate(std::size_t rows);

 private:
  std::size_t rows_;
  PooledBuffer numbers_;
  PooledBuffer data_;
};

}  // namespace tfrfast
