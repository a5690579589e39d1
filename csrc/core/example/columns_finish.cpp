// What is left to do once a column has all its rows.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/example/columns.h"

namespace tfrfast {

Column ColumnBuilder::finish(std::size_t rows) {
  if (holds_strings()) {
    offsets_.as<std::int64_t>()[value_count_] = static_cast<std::int64_t>(data_bytes_);
  }
  if (row_splits_.data() != nullptr) start_rows_to(rows);
  if (feature_->spec.layout == Layout::padded) return finish_padded(rows);

  Column column;
  column.name = feature_->spec.name;
  column.layout = feature_->spec.layout;
  column.type = feature_->spec.type;
  column.rows = rows;
  column.value_count = is_fixed() ? rows * feature_->row_values : value_count_;
  column.values =
      values_.take(holds_strings() ? data_bytes_ : column.value_count * feature_->value_bytes);
  if (holds_strings()) {
    column.offsets = offsets_.take((column.value_count + 1) * sizeof(std::int64_t));
  }
  const auto row_count = static_cast<std::int64_t>(rows);
  switch (column.layout) {
    case Layout::fixed:
      column.shape = feature_->spec.shape;
      column.shape.insert(column.shape.begin(), row_count);
      break;
    case Layout::ragged:
      column.row_splits = row_splits_.take((rows + 1) * sizeof(std::int64_t));
      break;
    case Layout::sparse:
      column.shape = {row_count, static_cast<std::int64_t>(longest_)};
      column.indices = indices_.take(2 * value_count_ * sizeof(std::int64_t));
      break;
    case Layout::padded:
      break;
  }
  return column;
}

Column ColumnBuilder::finish_padded(std::size_t rows) {
  Column column;
  column.name = feature_->spec.name;
  column.layout = Layout::padded;
  column.type = feature_->spec.type;
  column.rows = rows;
  column.shape = feature_->spec.shape;
  column.shape.insert(column.shape.begin(),
                      {static_cast<std::int64_t>(rows),
                       static_cast<std::int64_t>(longest_ / feature_->row_values)});
  const auto& padding = feature_->spec.default_value;
  const std::size_t item = holds_strings() ? sizeof(std::int64_t) : feature_->value_bytes;
  const std::size_t pad_bytes = holds_strings() && padding ? padding->strings[0].size() : 0;
  std::size_t bytes, string_bytes = 0;
  // One long row makes all of them long: what a record holds decides what this takes.
  if (__builtin_mul_overflow(rows, longest_, &column.value_count) ||
      __builtin_add_overflow(column.value_count, 1, &bytes) ||
      __builtin_mul_overflow(bytes, item, &bytes) ||
      __builtin_mul_overflow(column.value_count - value_count_, pad_bytes, &string_bytes) ||
      __builtin_add_overflow(string_bytes, data_bytes_, &string_bytes) ||
      std::max(bytes, string_bytes) > most_memory_bytes()) {
    throw Error(ErrorKind::memory,
                "Feature '" + column.name + "': " + std::to_string(rows) +
                    " rows, padded to the longest one's " + std::to_string(longest_) +
                    " values, are more than there is memory for. Use VarLen or smaller batches.");
  }
  const auto* splits = row_splits_.as<std::int64_t>();
  if (holds_strings()) {
    const std::string pad = padding ? padding->strings[0] : std::string();
    column.values = PooledBuffer(std::max<std::size_t>(string_bytes, 1));
    column.offsets = PooledBuffer(bytes);
    auto* offset = column.offsets.as<std::int64_t>();
    const auto* starts = offsets_.as<std::int64_t>();
    std::uint8_t* out = column.values.data();
    std::int64_t written = 0;
    for (std::size_t row = 0; row < rows; ++row) {
      const std::int64_t moved = written - starts[splits[row]];
      for (std::int64_t i = splits[row]; i < splits[row + 1]; ++i) *offset++ = starts[i] + moved;
      const std::int64_t row_bytes = starts[splits[row + 1]] - starts[splits[row]];
      if (row_bytes != 0) {
        std::memcpy(out + written, values_.data() + starts[splits[row]],
                    static_cast<std::size_t>(row_bytes));
      }
      written += row_bytes;
      for (auto i = static_cast<std::size_t>(splits[row + 1] - splits[row]); i < longest_; ++i) {
        *offset++ = written;
        std::memcpy(out + written, pad.data(), pad.size());
        written += static_cast<std::int64_t>(pad.size());
      }
    }
    *offset = written;
    return column;
  }
  column.values = PooledBuffer(bytes);
  std::uint8_t* out = column.values.data();
  for (std::size_t row = 0; row < rows; ++row) {
    const auto start = static_cast<std::size_t>(splits[row]);
    const auto count = static_cast<std::size_t>(splits[row + 1]) - start;
    if (count != 0) std::memcpy(out, values_.data() + start * item, count * item);
    out += count * item;
    const std::size_t pads = longest_ - count;
    if (!padding) {
      std::memset(out, 0, pads * item);
      out += pads * item;
    } else {
      for (std::size_t i = 0; i < pads; ++i, out += item) {
        std::memcpy(out, padding->numbers.data(), item);
      }
    }
  }
  return column;
}

}  // namespace tfrfast
