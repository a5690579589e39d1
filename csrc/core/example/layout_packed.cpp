#include "core/example/columns.h"

namespace tfrfast {
namespace {

Column finish_packed(FilledRows& rows) {
  Column column = rows.start_column(rows.packs * rows.width);
  column.rows = rows.packs;
  column.shape = {static_cast<std::int64_t>(rows.packs), static_cast<std::int64_t>(rows.width)};
  rows.move_values(column);
  return column;
}

Column finish_starts(FilledRows& rows) {
  Column column = rows.start_column(rows.count * rows.width);
  column.shape = {static_cast<std::int64_t>(rows.count), static_cast<std::int64_t>(rows.width)};
  rows.move_values(column);
  return column;
}

}  // namespace

constexpr Layout kPackedLayout{"packed", false, false, &finish_packed};
constexpr Layout kSegmentsLayout{"segments", false, false, &finish_packed};
constexpr Layout kPositionsLayout{"positions", false, false, &finish_packed};
constexpr Layout kStartsLayout{"starts", false, false, &finish_starts};

}  // namespace tfrfast
