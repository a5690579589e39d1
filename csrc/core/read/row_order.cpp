#include "core/read/row_order.h"

#include <cstdint>
#include <functional>

namespace tfrfast {

bool lies_before(const Row& a, const Row& b) noexcept {
  return a.shard != b.shard ? std::less<>()(a.shard, b.shard) : a.frame.offset < b.frame.offset;
}

bool are_in_order(std::span<const Row> rows) noexcept {
  return std::is_sorted(rows.begin(), rows.end(), lies_before);
}

std::vector<std::size_t> order_of_places(std::span<const Row> rows) {
  if (are_in_order(rows)) return {};
  struct Key {
    std::uintptr_t shard;
    std::uint64_t offset;
    std::size_t row;
  };
  std::vector<Key> keys;
  keys.reserve(rows.size());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    keys.push_back(
        {reinterpret_cast<std::uintptr_t>(rows[row].shard), rows[row].frame.offset, row});
  }
  std::sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) {
    return a.shard != b.shard ? a.shard < b.shard : a.offset < b.offset;
  });
  std::vector<std::size_t> order;
  order.reserve(rows.size());
  for (const Key& key : keys) order.push_back(key.row);
  return order;
}

}  // namespace tfrfast
