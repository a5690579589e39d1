// Orders for tests, by what shuffles them.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/order/block_shuffle.h"
#include "core/order/chosen_order.h"
#include "core/order/exact_order.h"
#include "core/order/given_order.h"
#include "core/order/length_batches.h"
#include "core/order/mixture.h"
#include "core/order/plan.h"
#include "core/order/weighted_order.h"

namespace tfrfast::testing {

enum class Shuffle { none, exact, blocks };
inline constexpr Shuffle kShuffles[] = {Shuffle::none, Shuffle::exact, Shuffle::blocks};

inline std::shared_ptr<const Order> make_order(std::int64_t records,
                                               Shuffle shuffle = Shuffle::exact,
                                               const BlockShape& blocks = {}) {
  if (shuffle == Shuffle::none) return std::make_shared<const GivenOrder>(records);
  if (shuffle == Shuffle::exact) return std::make_shared<const ExactOrder>(records);
  return std::make_shared<const BlockShuffle>(records, blocks);
}

inline std::shared_ptr<const Order> choose(std::vector<std::int64_t> indices, std::int64_t records,
                                           Shuffle shuffle = Shuffle::exact) {
  const auto count = static_cast<std::int64_t>(indices.size());
  return std::make_shared<const ChosenOrder>(make_order(count, shuffle), std::move(indices),
                                             records);
}

// Sources of these sizes, shuffled exactly.
inline MixtureSpec mixed(const std::vector<std::int64_t>& sizes, std::vector<std::int64_t> weights,
                         std::int64_t length) {
  MixtureSpec spec;
  for (const std::int64_t size : sizes) spec.sources.push_back(make_order(size));
  spec.length = length;
  spec.segments.push_back({0, 0, std::move(weights)});
  return spec;
}

}  // namespace tfrfast::testing
