// The draws of images that are cropped or mirrored at random: one for each row of a batch, from the
// order's seed, the epoch and the row's position.
#pragma once

#include <cstdint>
#include <vector>

#include "core/image/crop.h"
#include "core/order/plan.h"

namespace tfrfast {

inline std::vector<std::uint64_t> image_draws(const Plan& plan, std::uint64_t epoch,
                                              std::int64_t step, const PlannedBatch& batch) {
  const std::vector<std::int64_t> positions = plan.positions_of(step);
  std::vector<std::uint64_t> draws;
  std::uint64_t place = 0;  // among the rows of a position
  for (std::size_t i = 0; i < batch.records.size(); ++i) {
    const std::size_t row = batch.rows.empty() ? i : batch.rows[i].row;
    place = i > 0 && !batch.rows.empty() && row == batch.rows[i - 1].row ? place + 1 : 0;
    draws.push_back(
        image_draw(plan.options().seed, epoch, static_cast<std::uint64_t>(positions[row]), place));
  }
  return draws;
}

}  // namespace tfrfast
