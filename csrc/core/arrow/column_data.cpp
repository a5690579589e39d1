#include "core/arrow/column_data.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/base/utf8.h"

namespace tfrfast {
namespace {

ArrowData leaf_data(Column& column, const ArrowField& field, std::size_t count) {
  ArrowData data;
  data.length = static_cast<std::int64_t>(count);
  data.buffers.emplace_back();
  if (field.format == "Z" || field.format == "U")
    data.buffers.emplace_back(std::move(column.offsets));
  if (field.format == "b") {
    data.buffers.emplace_back(bits_of_bytes(column.values.data(), count));
  } else {
    data.buffers.emplace_back(std::move(column.values));
  }
  return data;
}

// Makes `count` items, each a value or a fixed list.
ArrowData item_data(Column& column, const ArrowField& field, std::size_t count) {
  if (!field.is_fixed_list()) return leaf_data(column, field, count);
  ArrowData data;
  data.length = static_cast<std::int64_t>(count);
  data.buffers.emplace_back();
  data.children.push_back(item_data(column, field.children[0], count * field.fixed_list_size()));
  return data;
}

// The row of the level above in which item `item` lies.
std::size_t row_in(const PooledBuffer& splits, std::size_t rows, std::size_t item) {
  const auto* const begin = splits.as<std::int64_t>();
  const auto* const after = std::upper_bound(begin, begin + rows, static_cast<std::int64_t>(item));
  return static_cast<std::size_t>(after - begin - 1);
}

// Throws Error(feature) unless all strings are text.
void check_text(const Column& column, const ArrowField& field,
                std::span<const std::int64_t> record_numbers) {
  const auto* offsets = column.offsets.as<std::int64_t>();
  for (std::size_t i = 0; i < column.value_count; ++i) {
    const WireBytes string{column.values.data() + offsets[i],
                           static_cast<std::size_t>(offsets[i + 1] - offsets[i])};
    if (is_utf8(string)) continue;
    std::size_t row = i / std::max<std::size_t>(field.row_values(), 1);
    for (auto level = column.inner_splits.rbegin(); level != column.inner_splits.rend(); ++level) {
      row = row_in(level->splits, level->rows, row);
    }
    if (field.is_list()) row = row_in(column.row_splits, column.rows, row);
    const std::int64_t record = record_numbers[row];
    throw Error(ErrorKind::feature,
                "Feature '" + column.name + "' of record " + std::to_string(record) +
                    " is not text in UTF-8. Leave it out of text=, to get bytes.",
                {{}, record, {}});
  }
}

// Converts the rows' starts from numbers of values to numbers of items. An item has `item_values`
// values.
void divide_splits(Column& column, std::size_t item_values,
                   std::span<const std::int64_t> record_numbers) {
  auto* splits = column.row_splits.as<std::int64_t>();
  const auto size = static_cast<std::int64_t>(item_values);
  for (std::size_t row = 0; row <= column.rows; ++row) {
    if (size != 0 && splits[row] % size == 0) {
      splits[row] /= size;
      continue;
    }
    const std::int64_t record = row == 0 ? 0 : record_numbers[row - 1];
    throw Error(ErrorKind::feature,
                "Feature '" + column.name + "' of record " + std::to_string(record) +
                    " has a number of values that is not a multiple of " + std::to_string(size) +
                    ", the number that each of its steps has.",
                {{}, record, {}});
  }
}

// Makes the lists of a level, around the items of the level inside.
ArrowData list_data(PooledBuffer splits, std::size_t rows, ArrowData items) {
  ArrowData data;
  data.length = static_cast<std::int64_t>(rows);
  data.buffers.emplace_back();
  data.buffers.emplace_back(std::move(splits));
  data.children.push_back(std::move(items));
  return data;
}

}  // namespace

ArrowData column_data(Column column, const ArrowField& field,
                      std::span<const std::int64_t> record_numbers) {
  ArrowData data;
  const std::size_t rows = column.rows;
  const ArrowField* item = &field;
  while (item->is_list()) item = &item->children.at(0);
  const ArrowField& values = item->innermost();
  if (values.format == "U") check_text(column, field, record_numbers);
  ArrowBuffer present;
  if (column.absent_rows != 0) present = ArrowBuffer(std::move(column.presence));
  const auto absent_rows = static_cast<std::int64_t>(column.absent_rows);
  if (field.is_list()) {
    const std::size_t item_values = item->row_values();
    if (item_values != 1) divide_splits(column, item_values, record_numbers);
    std::size_t items = column.value_count / std::max<std::size_t>(item_values, 1);
    data = item_data(column, *item, items);
    for (auto level = column.inner_splits.rbegin(); level != column.inner_splits.rend(); ++level) {
      data = list_data(std::move(level->splits), level->rows, std::move(data));
    }
    data = list_data(std::move(column.row_splits), rows, std::move(data));
  } else {
    data = item_data(column, field, rows);
  }
  data.buffers[0] = std::move(present);
  data.null_count = absent_rows;
  return data;
}

}  // namespace tfrfast
