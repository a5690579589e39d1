// Orders for tests, by kind.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/order/block_shuffle.h"
#include "core/order/chosen_order.h"
#include "core/order/in_order.h"
#include "core/order/length_batches.h"
#include "core/order/mixture.h"
#include "core/order/plan.h"
#include "core/order/shuffle.h"
#include "core/order/weighted.h"

namespace tfrfast::testing {

enum class OrderKind { in_order, shuffle, block_shuffle };
inline constexpr OrderKind kOrderKinds[] = {OrderKind::in_order, OrderKind::shuffle,
                                            OrderKind::block_shuffle};

inline std::shared_ptr<const Order> make_order(std::int64_t records,
                                               OrderKind kind = OrderKind::shuffle,
                                               const BlockShape& blocks = {}) {
  if (kind == OrderKind::in_order) return std::make_shared<const InOrder>(records);
  if (kind == OrderKind::shuffle) return std::make_shared<const Shuffle>(records);
  return std::make_shared<const BlockShuffle>(records, blocks);
}

inline std::shared_ptr<const Order> choose(std::vector<std::int64_t> indices, std::int64_t records,
                                           OrderKind kind = OrderKind::shuffle) {
  const auto count = static_cast<std::int64_t>(indices.size());
  return std::make_shared<const ChosenOrder>(make_order(count, kind), std::move(indices), records);
}

// Shuffled sources of these sizes.
inline MixtureSpec mixed(const std::vector<std::int64_t>& sizes, std::vector<std::int64_t> weights,
                         std::int64_t length) {
  MixtureSpec spec;
  for (const std::int64_t size : sizes) spec.sources.push_back(make_order(size));
  spec.length = length;
  spec.segments.push_back({0, 0, std::move(weights)});
  return spec;
}

}  // namespace tfrfast::testing
