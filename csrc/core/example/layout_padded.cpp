#include <algorithm>
#include <cstring>
#include <string>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/example/columns.h"

namespace tfrfast {
namespace {

std::size_t count_of(const std::int64_t* splits, std::size_t row) noexcept {
  return static_cast<std::size_t>(splits[row + 1] - splits[row]);
}

void pad_strings(const FilledRows& rows, const std::string& pad, Column& column) {
  auto* offset = column.offsets.as<std::int64_t>();
  const auto* splits = rows.row_splits.as<std::int64_t>();
  const auto* starts = rows.offsets.as<std::int64_t>();
  std::uint8_t* out = column.values.data();
  std::int64_t written = 0;
  for (std::size_t row = 0; row < rows.count; ++row) {
    const std::int64_t moved = written - starts[splits[row]];
    for (std::int64_t i = splits[row]; i < splits[row + 1]; ++i) *offset++ = starts[i] + moved;
    const std::int64_t row_bytes = starts[splits[row + 1]] - starts[splits[row]];
    if (row_bytes != 0) {
      std::memcpy(out + written, rows.values.data() + starts[splits[row]],
                  static_cast<std::size_t>(row_bytes));
    }
    written += row_bytes;
    for (std::size_t i = count_of(splits, row); i < rows.longest; ++i) {
      *offset++ = written;
      std::memcpy(out + written, pad.data(), pad.size());
      written += static_cast<std::int64_t>(pad.size());
    }
  }
  *offset = written;
}

// Fills with zeros if `pad` is null.
void pad_numbers(const FilledRows& rows, const std::uint8_t* pad, Column& column) {
  const std::size_t item = rows.feature.value_bytes;
  const auto* splits = rows.row_splits.as<std::int64_t>();
  std::uint8_t* out = column.values.data();
  for (std::size_t row = 0; row < rows.count; ++row) {
    const std::size_t count = count_of(splits, row);
    const std::uint8_t* values = rows.values.data() + static_cast<std::size_t>(splits[row]) * item;
    if (count != 0) std::memcpy(out, values, count * item);
    out += count * item;
    const std::size_t pads = rows.longest - count;
    if (pad == nullptr) {
      std::memset(out, 0, pads * item);
      out += pads * item;
    } else {
      for (std::size_t i = 0; i < pads; ++i, out += item) std::memcpy(out, pad, item);
    }
  }
}

Column finish_padded(FilledRows& rows) {
  Column column = rows.start_column(0);
  column.shape = rows.feature.spec.shape;
  column.shape.insert(column.shape.begin(),
                      {static_cast<std::int64_t>(rows.count),
                       static_cast<std::int64_t>(rows.longest / rows.feature.row_values)});
  const bool strings = column.type == ValueType::bytes;
  const auto& padding = rows.feature.spec.default_value;
  const std::string pad = strings && padding ? padding->strings[0] : std::string();
  const std::size_t item = strings ? sizeof(std::int64_t) : rows.feature.value_bytes;
  std::size_t bytes, string_bytes = 0;
  // Every row gets the longest row's length, so a single record decides how much memory the column
  // takes.
  if (__builtin_mul_overflow(rows.count, rows.longest, &column.value_count) ||
      __builtin_add_overflow(column.value_count, 1, &bytes) ||
      __builtin_mul_overflow(bytes, item, &bytes) ||
      __builtin_mul_overflow(column.value_count - rows.value_count, pad.size(), &string_bytes) ||
      __builtin_add_overflow(string_bytes, rows.string_bytes, &string_bytes) ||
      std::max(bytes, string_bytes) > max_padded_bytes()) {
    std::string shape;
    for (const std::int64_t size : column.shape) {
      shape += (shape.empty() ? "" : ", ") + std::to_string(size);
    }
    throw Error(ErrorKind::memory,
                "Feature '" + column.name +
                    "': padded to its longest row, the batch has the shape (" + shape +
                    "), which takes more than a quarter of the memory (" +
                    std::to_string(max_padded_bytes()) + " bytes). Use VarLen or smaller batches.");
  }
  if (strings) {
    column.values = PooledBuffer(std::max<std::size_t>(string_bytes, 1));
    column.offsets = PooledBuffer(bytes);
    pad_strings(rows, pad, column);
  } else {
    column.values = PooledBuffer(bytes);
    pad_numbers(rows, padding ? padding->numbers.data() : nullptr, column);
  }
  return column;
}

}  // namespace

constexpr Layout kPaddedLayout{"padded", true, false, &finish_padded};

}  // namespace tfrfast
