#include "core/example/columns.h"

namespace tfrfast {
namespace {

// Most rows are short. Each row writes at least this many pairs, and the next row overwrites the
// surplus: the loop needs no branch on the number of values, which would often be mispredicted.
constexpr std::size_t kAtOnce = 4;

Column finish_sparse(FilledRows& rows) {
  Column column = rows.start_column(rows.value_count);
  column.shape = {static_cast<std::int64_t>(rows.count), static_cast<std::int64_t>(rows.longest)};
  rows.move_values(column);
  constexpr std::size_t kPair = 2 * sizeof(std::int64_t);
  column.indices = PooledBuffer((rows.value_count + kAtOnce) * kPair);
  auto* index = column.indices.as<std::int64_t>();
  const auto* splits = rows.row_splits.as<std::int64_t>();
  for (std::size_t row = 0; row < rows.count; ++row) {
    const auto values = static_cast<std::size_t>(splits[row + 1] - splits[row]);
    for (std::size_t first = 0; first == 0 || first < values; first += kAtOnce) {
      for (std::size_t i = first; i < first + kAtOnce; ++i) {
        index[2 * i] = static_cast<std::int64_t>(row);
        index[2 * i + 1] = static_cast<std::int64_t>(i);
      }
    }
    index += 2 * values;
  }
  return column;
}

}  // namespace

constexpr Layout kSparseLayout{"sparse", false, false, &finish_sparse};

}  // namespace tfrfast
