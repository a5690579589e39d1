// Orders rows by their place in shards. Compressed shards are read in this order, so that nothing
// is inflated twice, and so are files that are not mapped, so that few calls read many rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/read/frame_reader.h"

namespace tfrfast {

// Whether `a` comes before `b`. Shards come in any order that is the same for all rows.
bool lies_before(const Row& a, const Row& b) noexcept;

bool are_in_order(std::span<const Row> rows) noexcept;
// Empty if the rows are in order already.
std::vector<std::size_t> order_of_places(std::span<const Row> rows);

// Whether any row has to be inflated.
inline bool any_is_inflated(std::span<const Row> rows) {
  return std::any_of(rows.begin(), rows.end(), [](const Row& row) {
    const StoredFile& file = *row.shard->file;
    return file.is_inflated() && file.mapping() == nullptr;
  });
}

// Whether the rows are of several files, of which the first is read by system calls.
inline bool are_read_by_calls(std::span<const Row> rows) {
  if (rows.empty() || rows.front().shard == rows.back().shard) return false;
  const StoredFile& file = *rows.front().shard->file;
  return file.mapping() == nullptr && !file.traits().is_remote && !file.is_inflated();
}

// Cuts `count` rows into tasks that are worth waking another thread. cost_of(row) is the cost of a
// row in bytes. Returns the first row of each task, and `count`.
template <class CostOf>
std::vector<std::size_t> cut_tasks(std::size_t count, const CostOf& cost_of) {
  constexpr std::uint64_t kBytesPerTask = 256 << 10;
  std::vector<std::size_t> starts{0};
  std::uint64_t bytes = 0;
  for (std::size_t row = 0; row < count; ++row) {
    if (bytes >= kBytesPerTask) {
      starts.push_back(row);
      bytes = 0;
    }
    bytes += cost_of(row);
  }
  starts.push_back(count);
  return starts;
}

}  // namespace tfrfast
