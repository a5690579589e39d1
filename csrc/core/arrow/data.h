// The memory of an Arrow column, and of the columns inside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/arrow/c_data.h"
#include "core/base/pool.h"

namespace tfrfast {

// Bytes and whoever keeps them alive. An owner is freed on any thread, so it may not need Python.
struct ArrowBuffer {
  const void* data = nullptr;
  std::shared_ptr<const void> owner;

  ArrowBuffer() = default;
  ArrowBuffer(const void* bytes, std::shared_ptr<const void> kept_by)
      : data(bytes), owner(std::move(kept_by)) {}
  explicit ArrowBuffer(PooledBuffer buffer) {
    auto kept = std::make_shared<PooledBuffer>(std::move(buffer));
    data = kept->data();
    owner = std::move(kept);
  }
};

// The first buffer says which rows there are: a bit for each row, or null if there are all of them.
struct ArrowData {
  std::int64_t length = 0;
  std::int64_t null_count = 0;
  std::vector<ArrowBuffer> buffers;
  std::vector<ArrowData> children;
  std::shared_ptr<const ArrowData> dictionary;  // null if it is not one; shared by batches
};

// Writes the column to `out`, which then owns it. The receiver may release it on any thread, long
// after everything else is gone, and in a forked child.
void export_array(ArrowData data, ArrowArray* out);

// Room for a bit for each of `rows` rows, all of them set.
PooledBuffer all_rows_set(std::size_t rows);

// A bit for each of `count` bytes: whether it is not 0.
PooledBuffer bits_of_bytes(const std::uint8_t* bytes, std::size_t count);

}  // namespace tfrfast
