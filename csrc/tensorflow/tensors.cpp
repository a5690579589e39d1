#include "tensorflow/tensors.h"

#include <utility>

namespace tfrfast::tensorflow {
namespace {

std::atomic<bool> hands_out{false};

void write_column_of_strings(KernelCall& call, int output, const Shape& shape, Column& column) {
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

bool hands_out_views() noexcept {
  return hands_out.load(std::memory_order_relaxed);
}
void hand_out_views(bool yes) noexcept {
  hands_out.store(yes, std::memory_order_relaxed);
}

MemoryOwner::MemoryOwner(std::shared_ptr<const void> memory, std::size_t references)
    : StringOwner{&add_reference, &drop_reference, this},
      memory_(std::move(memory)),
      references_(references) {}

void MemoryOwner::add_reference(StringOwner* self) {
  static_cast<MemoryOwner*>(self->object)->references_.fetch_add(1, std::memory_order_relaxed);
}

bool MemoryOwner::drop_reference(StringOwner* self) {
  auto* owner = static_cast<MemoryOwner*>(self->object);
  if (owner->references_.fetch_sub(1, std::memory_order_acq_rel) > 1) return false;
  delete owner;
  return true;
}

int write_columns(KernelCall& call, int first, const FeatureSchema& schema,
                  std::vector<Column> columns) {
  int output = first;
  for (std::size_t slot = 0; slot < columns.size(); ++slot) {
    Column& column = columns[slot];
    const auto count = static_cast<std::int64_t>(column.value_count);
    const bool has_splits = column.row_splits.data() != nullptr;
    const bool has_indices = column.indices.data() != nullptr;
    Shape value_shape = has_splits || has_indices ? Shape{count} : column.shape;
    if (has_splits && column.type == ValueType::tensor) {  // rows of any number of steps
      const std::vector<std::int64_t>& sizes = schema[slot].spec.tensor->shape;
      value_shape.insert(value_shape.end(), sizes.begin() + 1, sizes.end());
    }

    if (has_indices) {
      call.set_tensor(output++, DataType::int64, {count, 2}, std::move(column.indices));
    }
    if (column.type == ValueType::bytes) {
      write_column_of_strings(call, output++, value_shape, column);
    } else {
      const std::size_t bytes = column.value_count * schema[slot].value_bytes;
      call.set_values(output++, value_shape, bytes, std::move(column.values));
    }
    if (column.type == ValueType::image) {
      // The crops hold the size of each picture.
      constexpr auto kNumbers = static_cast<std::int64_t>(sizeof(ImageCrop) / sizeof(std::int32_t));
      const auto pictures = static_cast<std::int64_t>(column.pictures);
      call.set_tensor(output++, DataType::int32, {pictures, kNumbers}, std::move(column.crops));
    } else if (has_splits) {
      const auto splits = static_cast<std::int64_t>(column.rows) + 1;
      call.set_tensor(output++, DataType::int64, {splits}, std::move(column.row_splits));
      for (Column::InnerSplits& level : column.inner_splits) {
        const auto starts = static_cast<std::int64_t>(level.rows) + 1;
        call.set_tensor(output++, DataType::int64, {starts}, std::move(level.splits));
      }
    }
    if (has_indices) call.set_integers(output++, column.shape);
  }
  return output;
}

}  // namespace tfrfast::tensorflow
