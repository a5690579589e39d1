// The payloads of many records, side by side in our own memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/base/pool.h"

namespace tfrfast {

// The maker fills the batch, and then shares the batch as `const`. From then on, the batch is safe
// from many threads, and the offsets never change. Python may write into data(), indices() and
// valid() at any time, so no code may rely on their contents.
class RecordBatch {
 public:
  RecordBatch() : RecordBatch(0) {}
  // Makes space for `rows` rows. Every row is valid at first. Everything else is undefined.
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
  // Whether a row is not padding. Python may have stored any byte.
  bool is_real(std::size_t row) const noexcept {
    return reinterpret_cast<const std::uint8_t*>(valid())[row] != 0;
  }
  std::size_t data_bytes() const noexcept { return static_cast<std::size_t>(offsets()[rows_]); }

  // Allocates the space that the offsets require. The offsets must be set. data() is never null, so
  // even zero bytes may be copied there.
  void allocate_data() { data_ = PooledBuffer(std::max<std::size_t>(data_bytes(), 1)); }

  // A copy of the offsets for Python, which could write even into a read-only array. The core never
  // reads the copy. Made by the first call. One thread at a time. Lives as long as the batch.
  const std::int64_t* offsets_to_show() const;

  // The first record number of each source, ascending from 0. Null for a single source.
  using SourceStarts = std::shared_ptr<const std::vector<std::int64_t>>;
  const SourceStarts& source_starts() const noexcept { return source_starts_; }
  void set_source_starts(SourceStarts starts) noexcept { source_starts_ = std::move(starts); }

  // Makes a new batch of rows of other batches, in this order. Each row must exist.
  using RowOf = std::pair<const RecordBatch*, std::size_t>;
  static std::shared_ptr<RecordBatch> gather(std::span<const RowOf> rows);
  // Makes a new batch of these rows, in this order. Each row must be less than size().
  std::shared_ptr<RecordBatch> rows(std::span<const std::int64_t> rows) const;

  // Removes the marked rows, and closes the gaps.
  void remove_rows(const std::vector<bool>& marked);
  // Keeps only the first `rows` rows.
  void truncate(std::size_t rows);

 private:
  std::size_t rows_;
  PooledBuffer numbers_;
  PooledBuffer data_;
  SourceStarts source_starts_;
  mutable PooledBuffer shown_offsets_;  // empty until offsets_to_show() is called
};

}  // namespace tfrfast
