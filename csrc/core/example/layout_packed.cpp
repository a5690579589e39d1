#include <algorithm>
#include <cstring>
#include <numeric>

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

// Calls put(out, record, length) for the tokens of each record. All other tokens become 0.
template <class Put>
Column finish_facts(FilledRows& rows, const Put& put) {
  const std::size_t budget = rows.feature.spec.budget;
  auto* const out = rows.values.as<std::int32_t>();
  std::size_t done = 0;
  for (const PackedRecord& record : rows.records) {
    const std::size_t begin = record.row * rows.width + record.columns[budget];
    const std::size_t length = record.lengths[budget];
    std::fill(out + done, out + begin, 0);
    put(out + begin, record, length);
    done = begin + length;
  }
  std::fill(out + done, out + rows.packs * rows.width, 0);
  return finish_packed(rows);
}

Column finish_segments(FilledRows& rows) {
  return finish_facts(rows, [](std::int32_t* out, const PackedRecord& record, std::size_t length) {
    std::fill_n(out, length, record.segment);
  });
}

Column finish_positions(FilledRows& rows) {
  std::vector<std::int32_t> counts;  // a copy is faster than counting
  return finish_facts(rows, [&](std::int32_t* out, const PackedRecord&, std::size_t length) {
    if (length > counts.size()) {
      counts.resize(length);
      std::iota(counts.begin(), counts.end(), 0);
    }
    if (length != 0) std::memcpy(out, counts.data(), length * sizeof(std::int32_t));
  });
}

Column finish_starts(FilledRows& rows) {
  auto* out = rows.values.as<std::int64_t>();
  for (const PackedRecord& record : rows.records) {
    *out++ = record.row;
    out = std::copy_n(record.columns.begin(), rows.width - 2, out);
    *out++ = record.piece;
  }
  Column column = rows.start_column(rows.count * rows.width);
  column.shape = {static_cast<std::int64_t>(rows.count), static_cast<std::int64_t>(rows.width)};
  rows.move_values(column);
  return column;
}

}  // namespace

constexpr Layout kPackedLayout{"packed", false, false, &finish_packed};
constexpr Layout kSegmentsLayout{"segments", false, false, &finish_segments};
constexpr Layout kPositionsLayout{"positions", false, false, &finish_positions};
constexpr Layout kStartsLayout{"starts", false, false, &finish_starts};

}  // namespace tfrfast
