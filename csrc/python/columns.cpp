#include "python/columns.h"

#include <pybind11/stl.h>

#include <utility>

namespace py = pybind11;

namespace tfrfast::python {
namespace {

// `is_float` says whether images are decoded to floats.
py::array own_values(Column& column, std::vector<py::ssize_t> shape, bool is_float) {
  PooledBuffer values = std::move(column.values);
  switch (column.type) {
    case ValueType::float32:
      return own<float>(std::move(values), std::move(shape));
    case ValueType::int64:
      return own<std::int64_t>(std::move(values), std::move(shape));
    case ValueType::int32:
      return own<std::int32_t>(std::move(values), std::move(shape));
    case ValueType::int16:
      return own<std::int16_t>(std::move(values), std::move(shape));
    case ValueType::int8:
      return own<std::int8_t>(std::move(values), std::move(shape));
    case ValueType::uint32:
      return own<std::uint32_t>(std::move(values), std::move(shape));
    case ValueType::uint16:
      return own<std::uint16_t>(std::move(values), std::move(shape));
    case ValueType::boolean:
      return own<bool>(std::move(values), std::move(shape));
    case ValueType::float64:
      return own<double>(std::move(values), std::move(shape));
    case ValueType::uint64:
      return own<std::uint64_t>(std::move(values), std::move(shape));
    case ValueType::uint8:
    case ValueType::bytes:
    case ValueType::raw:
    case ValueType::tensor:
      break;
    case ValueType::image:
      if (is_float) return own<float>(std::move(values), std::move(shape));
      break;
  }
  return own<std::uint8_t>(std::move(values), std::move(shape));
}

}  // namespace

py::tuple to_python(Column column, const CompiledFeature& feature) {
  py::object offsets = py::none(), splits = py::none(), indices = py::none();
  const auto count = static_cast<py::ssize_t>(column.value_count);
  const auto rows = static_cast<py::ssize_t>(column.rows);
  std::vector<py::ssize_t> value_shape = {count};
  if (column.type == ValueType::bytes) {
    const auto* starts = column.offsets.as<std::int64_t>();
    value_shape = {static_cast<py::ssize_t>(starts[count])};
    offsets = own<std::int64_t>(std::move(column.offsets), {count + 1});
  } else if (column.type == ValueType::raw || column.type == ValueType::tensor) {
    value_shape = {count, static_cast<py::ssize_t>(feature.value_bytes)};
  } else if (column.row_splits.data() == nullptr && column.indices.data() == nullptr) {
    value_shape.assign(column.shape.begin(), column.shape.end());
  }
  if (column.row_splits.data() != nullptr) {
    splits = own<std::int64_t>(std::move(column.row_splits), {rows + 1});
  }
  if (!column.inner_splits.empty()) {
    py::list levels;
    levels.append(std::move(splits));
    for (Column::InnerSplits& level : column.inner_splits) {
      const auto inner_rows = static_cast<py::ssize_t>(level.rows);
      levels.append(own<std::int64_t>(std::move(level.splits), {inner_rows + 1}));
    }
    splits = std::move(levels);
  }
  if (column.indices.data() != nullptr) {
    indices = own<std::int64_t>(std::move(column.indices), {count, 2});
  }
  py::object crops = py::none();
  if (column.crops.data() != nullptr) {
    constexpr auto kNumbers = static_cast<py::ssize_t>(sizeof(ImageCrop) / sizeof(std::int32_t));
    crops = own<std::int32_t>(std::move(column.crops),
                              {static_cast<py::ssize_t>(column.pictures), kNumbers});
  }
  py::object shape = py::cast(column.shape);
  if (column.shapes.data() != nullptr) {
    shape =
        own<std::int64_t>(std::move(column.shapes), {rows, static_cast<py::ssize_t>(kShapeSize)});
  }
  const bool is_float = feature.spec.image && feature.spec.image->is_float;
  return py::make_tuple(own_values(column, std::move(value_shape), is_float), offsets, splits,
                        indices, shape, crops);
}

py::list to_python(std::vector<Column> columns, const FeatureSchema& schema) {
  py::list result;
  for (std::size_t slot = 0; slot < columns.size(); ++slot) {
    result.append(to_python(std::move(columns[slot]), schema[slot]));
  }
  return result;
}

}  // namespace tfrfast::python
