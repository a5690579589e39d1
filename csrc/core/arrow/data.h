// The memory of an Arrow column and of its child columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/arrow/c_data.h"
#include "core/base/pool.h"

namespace tfrfast {

// Bytes and their owner. An owner may be freed on any thread, so freeing must not need Python.
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

// The first buffer is the validity bitmap: a bit per row, or null if no row is null.
struct ArrowData {
  std::int64_t length = 0;
  std::int64_t null_count = 0;
  std::vector<ArrowBuffer> buffers;
  std::vector<ArrowData> children;
  // Null if the column is not a dictionary; shared by batches.
  std::shared_ptr<const ArrowData> dictionary;
};

// Writes the column to `out`, and hands over the memory. The receiver may release the column on any
// thread, after everything else is gone, and in a forked child.
void export_array(ArrowData data, ArrowArray* out);

// A bitmap of `count` bytes: a bit is set if its byte is not 0.
PooledBuffer bits_of_bytes(const std::uint8_t* bytes, std::size_t count);

}  // namespace tfrfast
