#include "core/example/columns.h"

namespace tfrfast {
namespace {

Column finish_ragged(FilledRows& rows) {
  Column column = rows.start_column(rows.value_count);
  rows.move_values(column);
  column.row_splits = rows.row_splits.take((rows.count + 1) * sizeof(std::int64_t));
  return column;
}

}  // namespace

constexpr Layout kRaggedLayout{"ragged", false, false, &finish_ragged};

}  // namespace tfrfast
