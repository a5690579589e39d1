#include "core/example/columns.h"

namespace tfrfast {
namespace {

Column finish_fixed(FilledRows& rows) {
  Column column = rows.start_column(rows.count * rows.feature.row_values);
  column.shape = rows.feature.spec.shape;
  column.shape.insert(column.shape.begin(), static_cast<std::int64_t>(rows.count));
  rows.move_values(column);
  return column;
}

}  // namespace

constexpr Layout kFixedLayout{"fixed", true, true, &finish_fixed};

}  // namespace tfrfast
