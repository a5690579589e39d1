#include "tensorflow/kernel_call.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <utility>

#include "core/base/memory.h"

namespace tfrfast::tensorflow {
namespace {

template <class Elements>
const auto& only(const Elements& elements, int number) {
  if (elements.size() != 1) {
    throw KernelFailure{Code::invalid_argument, "Input " + std::to_string(number) +
                                                    " must be a scalar, but has " +
                                                    std::to_string(elements.size()) + " elements."};
  }
  return elements.front();
}

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

Code code_of(const Error& error) noexcept {
  switch (error.kind()) {
    case ErrorKind::corrupt:
    case ErrorKind::truncated:
      return Code::data_loss;
    case ErrorKind::stale_index:
    case ErrorKind::closed:
      return Code::failed_precondition;
    case ErrorKind::io:
      switch (error.system_error()) {
        case ENOENT:
        case ENOTDIR:
          return Code::not_found;
        case EACCES:
        case EPERM:
          return Code::permission_denied;
        case EISDIR:
          return Code::failed_precondition;
        case ENOMEM:
        case EMFILE:
        case ENFILE:
          return Code::resource_exhausted;
        default:
          return Code::unknown;
      }
    case ErrorKind::memory:
      return Code::resource_exhausted;
    case ErrorKind::invalid:
    case ErrorKind::out_of_range:
    case ErrorKind::feature:
      return Code::invalid_argument;
  }
  return Code::unknown;
}

std::string encode_error(Code code, std::string_view message) {
  std::string text = std::to_string(static_cast<int>(code));
  text += ' ';
  text += message;
  return text;
}

KernelFailure decode_error(std::string_view text) {
  int code = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), code);
  if (problem != std::errc() || end == text.data() + text.size() || *end != ' ') {
    return {Code::unknown, std::string(text)};
  }
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return {static_cast<Code>(code), std::string(text)};
}

KernelCall::KernelCall(TF_OpKernelContext* context)
    : api_(*c_api()), context_(context), status_(api_.TF_NewStatus()) {}

KernelCall::~KernelCall() {
  for (TF_Tensor* tensor : held_) api_.TF_DeleteTensor(tensor);
  api_.TF_DeleteStatus(status_);
}

void KernelCall::check() {
  const auto code = static_cast<Code>(api_.TF_GetCode(status_));
  if (code != Code::ok) throw KernelFailure{code, api_.TF_Message(status_)};
}

TF_Tensor* KernelCall::input(int number, DataType type) {
  TF_Tensor* tensor = nullptr;
  api_.TF_GetInput(context_, number, &tensor, status_);
  check();
  held_.push_back(tensor);
  if (api_.TF_TensorType(tensor) != static_cast<int>(type)) {
    throw KernelFailure{Code::invalid_argument,
                        "Input " + std::to_string(number) + " has the wrong type."};
  }
  return tensor;
}

std::span<const TString> KernelCall::strings(int number) {
  const TF_Tensor* tensor = input(number, DataType::string);
  return {static_cast<const TString*>(api_.TF_TensorData(tensor)),
          static_cast<std::size_t>(api_.TF_TensorElementCount(tensor))};
}

std::span<const std::int64_t> KernelCall::integers(int number) {
  const TF_Tensor* tensor = input(number, DataType::int64);
  return {static_cast<const std::int64_t*>(api_.TF_TensorData(tensor)),
          static_cast<std::size_t>(api_.TF_TensorElementCount(tensor))};
}

std::string_view KernelCall::string(int number) {
  return only(strings(number), number).read();
}
std::int64_t KernelCall::integer(int number) {
  return only(integers(number), number);
}

void* KernelCall::allocate(int output, DataType type, const Shape& shape, std::size_t bytes) {
  TF_Tensor* tensor = api_.TF_AllocateOutput(context_, output, static_cast<int>(type), shape.data(),
                                             static_cast<int>(shape.size()), bytes, status_);
  check();
  held_.push_back(tensor);
  return api_.TF_TensorData(tensor);
}

std::span<TString> KernelCall::allocate_strings(int output, const Shape& shape) {
  std::size_t count = 1;
  for (const std::int64_t size : shape) {
    if (__builtin_mul_overflow(count, static_cast<std::size_t>(size), &count)) {
      throw OutOfMemory(std::numeric_limits<std::uint64_t>::max());
    }
  }
  const std::size_t bytes = bytes_for<TString>(count);
  return {static_cast<TString*>(allocate(output, DataType::string, shape, bytes)), count};
}

void KernelCall::set_string(int output, std::string_view value) {
  static_cast<TString*>(allocate(output, DataType::string, {}, sizeof(TString)))
      ->write_copy(value.data(), value.size());
}

void KernelCall::set_boolean(int output, bool value) {
  *static_cast<bool*>(allocate(output, DataType::boolean, {}, sizeof value)) = value;
}

void KernelCall::set_integers(int output, std::span<const std::int64_t> values) {
  void* out = allocate(output, DataType::int64, {static_cast<std::int64_t>(values.size())},
                       values.size_bytes());
  if (!values.empty()) std::memcpy(out, values.data(), values.size_bytes());
}

void KernelCall::set_booleans(int output, std::span<const char> values) {
  void* out = allocate(output, DataType::boolean, {static_cast<std::int64_t>(values.size())},
                       values.size());
  if (!values.empty()) std::memcpy(out, values.data(), values.size());
}

std::optional<std::size_t> KernelCall::bytes_of(DataType type, const Shape& shape) const noexcept {
  std::size_t bytes = api_.TF_DataTypeSize(static_cast<int>(type));
  for (const std::int64_t size : shape) {
    if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(size), &bytes)) return {};
  }
  return bytes;
}

void KernelCall::set_tensor(int output, DataType type, const Shape& shape, PooledBuffer memory) {
  // The tensor has exactly the bytes of its elements. tf.data service sends all bytes of a buffer,
  // and the receiver allocates the bytes of the shape.
  const std::optional<std::size_t> bytes = bytes_of(type, shape);
  if (!bytes || *bytes > memory.capacity()) {
    throw Error(ErrorKind::invalid, "Output " + std::to_string(output) +
                                        " has a type or shape that its memory is too small for.");
  }
  auto owner = std::make_unique<PooledBuffer>(std::move(memory));
  void* const data = owner->data();
  const auto give_back = [](void*, std::size_t, void* buffer) {
    delete static_cast<PooledBuffer*>(buffer);
  };
  TF_Tensor* const tensor =
      api_.TF_NewTensor(static_cast<int>(type), shape.data(), static_cast<int>(shape.size()), data,
                        *bytes, give_back, owner.release());
  if (tensor == nullptr) throw std::bad_alloc();
  held_.push_back(tensor);
  api_.TF_SetOutput(context_, output, tensor, status_);
  check();
}

void KernelCall::set_values(int output, const Shape& shape, std::size_t bytes,
                            PooledBuffer memory) {
  if (output < output_count()) {
    const auto type = static_cast<DataType>(api_.TF_ExpectedOutputDataType(context_, output));
    if (bytes_of(type, shape) == bytes) return set_tensor(output, type, shape, std::move(memory));
  }
  throw Error(ErrorKind::invalid, "Output " + std::to_string(output) +
                                      " has another type in the graph than in the features. "
                                      "Build the graph again.");
}

void KernelCall::fail(Code code, const std::string& message) noexcept {
  api_.TF_SetStatus(status_, static_cast<int>(code), message.c_str());
  api_.TF_OpKernelContext_Failure(context_, status_);
}

bool hands_out_views() noexcept {
  return hands_out.load(std::memory_order_relaxed);
}
void hand_out_views(bool yes) noexcept {
  hands_out.store(yes, std::memory_order_relaxed);
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
