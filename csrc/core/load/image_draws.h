// The draws of images that are cropped or mirrored at random: one for each row of a batch, from the
// order's seed, the epoch and the row's position.
#pragma once

#include <cstdint>
#include <vector>

#include "core/image/crop.h"
#include "core/order/plan.h"

namespace tfrfast {

// In the order of plan.rows().
inline std::vector<std::uint64_t> image_draws(const Plan& plan, const EpochOrder& order,
                                              std::uint64_t epoch, std::int64_t step) {
  std::vector<std::uint64_t> draws;
  for (const Plan::RowPosition& row : plan.row_positions(order, step)) {
    draws.push_back(image_draw(plan.options().seed, epoch, static_cast<std::uint64_t>(row.position),
                               static_cast<std::uint64_t>(row.place)));
  }
  return draws;
}

}  // namespace tfrfast
