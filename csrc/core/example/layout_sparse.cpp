#include <algorithm>

#include "core/example/columns.h"

namespace tfrfast {
namespace {

Column finish_sparse(FilledRows& rows) {
  Column column = rows.start_column(rows.value_count);
  column.shape = {static_cast<std::int64_t>(rows.count), static_cast<std::int64_t>(rows.longest)};
  rows.move_values(column);
  constexpr std::size_t kPair = 2 * sizeof(std::int64_t);
  column.indices = PooledBuffer(std::max<std::size_t>(rows.value_count * kPair, 1));
  auto* index = column.indices.as<std::int64_t>();
  const auto* splits = rows.row_splits.as<std::int64_t>();
  for (std::size_t row = 0; row < rows.count; ++row) {
    const std::int64_t values = splits[row + 1] - splits[row];
    for (std::int64_t i = 0; i < values; ++i) {
      *index++ = static_cast<std::int64_t>(row);
      *index++ = i;
    }
  }
  return column;
}

}  // namespace

constexpr Layout kSparseLayout{"sparse", false, false, &finish_sparse};

}  // namespace tfrfast
