#include "core/read/row_order.h"

#include <functional>
#include <numeric>

namespace tfrfast {

bool lies_before(const Row& a, const Row& b) noexcept {
  return a.shard != b.shard ? std::less<>()(a.shard, b.shard) : a.frame.offset < b.frame.offset;
}

bool are_in_order(std::span<const Row> rows) noexcept {
  return std::is_sorted(rows.begin(), rows.end(), lies_before);
}

std::vector<std::size_t> order_of_places(std::span<const Row> rows) {
  if (are_in_order(rows)) return {};
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [rows](std::size_t a, std::size_t b) { return lies_before(rows[a], rows[b]); });
  return order;
}

}  // namespace tfrfast
