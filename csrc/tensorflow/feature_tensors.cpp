#include "tensorflow/feature_tensors.h"

#include <cstring>
#include <utility>

#include "tensorflow/packed_text.h"
#include "tensorflow/shared_strings.h"

namespace tfrfast::tensorflow {
namespace {

constexpr std::string_view kMagic = "tfrffea1";

template <class Enum>
Enum enum_of(PackedTextReader& reader, Enum last) {
  const std::uint64_t value = reader.number();
  if (value > static_cast<std::uint64_t>(last)) reader.refuse();
  return static_cast<Enum>(value);
}

FeatureSpec read_spec(PackedTextReader& reader) {
  FeatureSpec spec;
  spec.name = reader.string();
  spec.layout = enum_of(reader, Layout::sparse);
  spec.type = enum_of(reader, ValueType::raw);
  const std::size_t dimensions = reader.count();
  for (std::size_t i = 0; i < dimensions; ++i) {
    spec.shape.push_back(static_cast<std::int64_t>(reader.number()));
  }
  spec.raw_bytes = static_cast<std::size_t>(reader.number());
  if (reader.number() != 0) {
    DefaultValue& value = spec.default_value.emplace();
    const std::string_view numbers = reader.string();
    value.numbers.assign(numbers.begin(), numbers.end());
    const std::size_t strings = reader.count();
    for (std::size_t i = 0; i < strings; ++i) value.strings.emplace_back(reader.string());
  }
  return spec;
}

void write_strings(KernelCall& call, int output, const Shape& shape, Column& column) {
  const std::int64_t* offsets = column.offsets.as<std::int64_t>();
  const auto memory = std::make_shared<const PooledBuffer>(std::move(column.values));
  const std::uint8_t* bytes = memory->data();
  write_shared_strings(
      call.allocate_strings(output, shape).data(), column.value_count,
      [=](std::size_t i) {
        return std::span(bytes + offsets[i], static_cast<std::size_t>(offsets[i + 1] - offsets[i]));
      },
      memory);
}

}  // namespace

FeatureTensors decode_features(std::string_view text) {
  PackedTextReader reader(text, kMagic, "feature description");
  FeatureTensors features;
  std::vector<FeatureSpec> specs(reader.count());
  for (FeatureSpec& spec : specs) {
    spec = read_spec(reader);
    features.types.push_back(static_cast<DataType>(reader.number()));
  }
  features.plan = std::make_shared<const FeaturePlan>(std::move(specs));
  return features;
}

int FeatureTensors::write(KernelCall& call, int first, std::vector<Column> columns) const {
  int output = first;
  for (std::size_t slot = 0; slot < columns.size(); ++slot) {
    Column& column = columns[slot];
    const auto count = static_cast<std::int64_t>(column.value_count);
    const bool is_ragged = column.layout == Layout::ragged;
    const bool is_sparse = column.layout == Layout::sparse;
    const Shape value_shape = is_ragged || is_sparse ? Shape{count} : column.shape;

    if (is_sparse) {
      call.set_tensor(output++, DataType::int64, {count, 2}, std::move(column.indices));
    }
    if (column.type == ValueType::bytes) {
      write_strings(call, output++, value_shape, column);
    } else {
      call.set_tensor(output++, types[slot], value_shape, std::move(column.values));
    }
    if (is_ragged) {
      const auto splits = static_cast<std::int64_t>(column.rows) + 1;
      call.set_tensor(output++, DataType::int64, {splits}, std::move(column.row_splits));
    }
    if (is_sparse) call.set_integers(output++, column.shape);
  }
  return output;
}

}  // namespace tfrfast::tensorflow
