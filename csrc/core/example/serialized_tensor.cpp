#include "core/example/serialized_tensor.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "core/base/bytes.h"
#include "core/example/message_wire.h"

namespace tfrfast {
namespace {

// Fields of a TensorProto and of its shape.
constexpr std::uint32_t kType = 1, kShape = 2, kContent = 4;
constexpr std::uint32_t kSize = 2, kSizeOfDimension = 1;
// Messages, which protobuf would look into.
constexpr std::uint32_t kResource = 14, kVariant = 15;
constexpr std::uint32_t kNumbers[] = {5, 6, 7, 9, 10, 11, 12, 13, 16, 17};
constexpr std::size_t kMaxRank = 254;

struct TensorType {
  std::uint32_t number;
  const char* name;
  std::size_t bytes;    // 0: not read
  std::uint32_t field;  // of values that stand alone
};

constexpr TensorType kBoolean{10, "bool", 1, 11};
constexpr TensorType kTensorTypes[] = {
    {1, "float32", 4, 5},     {2, "float64", 8, 6},
    {3, "int32", 4, 7},       {4, "uint8", 1, 7},
    {5, "int16", 2, 7},       {6, "int8", 1, 7},
    {7, "string", 0, 0},      {8, "complex64", 0, 0},
    {9, "int64", 8, 10},      kBoolean,
    {14, "bfloat16", 2, 13},  {17, "uint16", 2, 7},
    {18, "complex128", 0, 0}, {19, "float16", 2, 13},
    {22, "uint32", 4, 16},    {23, "uint64", 8, 17},
};

const TensorType* find_type(std::uint32_t number) noexcept {
  const auto* found = std::ranges::find(kTensorTypes, number, &TensorType::number);
  return found == std::end(kTensorTypes) ? nullptr : found;
}

std::string name_of_type(std::uint32_t number) {
  const TensorType* type = find_type(number);
  return type == nullptr ? "type " + std::to_string(number) : type->name;
}

std::string text_of(const std::vector<std::int64_t>& sizes) {
  std::string text;
  for (const std::int64_t size : sizes) {
    text += (text.empty() ? "" : ", ") + (size < 0 ? "any" : std::to_string(size));
  }
  return '(' + text + ')';
}

// The wire type of a value that stands alone: floats have a fixed size.
unsigned wire_type_of(std::uint32_t field) noexcept {
  return field == 5 || field == 9 ? 5 : field == 6 || field == 12 ? 1 : 0;
}

const std::uint8_t* read_number(unsigned wire_type, const std::uint8_t* next,
                                const std::uint8_t* end, std::uint64_t& value) noexcept {
  return wire_type == 0 ? read_value(next, end, value)
                        : read_bits(wire_type == 1 ? 8 : 4, next, end, value);
}

}  // namespace

std::size_t tensor_value_bytes(std::uint32_t type) noexcept {
  const TensorType* found = find_type(type);
  return found == nullptr ? 0 : found->bytes;
}

bool SerializedTensor::find(WireBytes string, const TensorForm& form) {
  const TensorType& wanted = *find_type(form.type);
  type_ = 0;
  field_ = wanted.field;
  value_bytes_ = wanted.bytes;
  is_unusual_ = false;
  sizes_.clear();
  alone_.clear();
  content_ = {};
  if (read(string) == nullptr || is_unusual_) {
    problem_ = "its bytes are not a serialized tensor";
    return false;
  }
  if (type_ != form.type) {
    problem_ = "its values are " + name_of_type(type_) + ", not " + wanted.name;
    return false;
  }
  const bool has_any_length = form.has_any_length() && !sizes_.empty();
  if (sizes_.size() != form.shape.size() ||
      !std::equal(sizes_.begin() + has_any_length, sizes_.end(),
                  form.shape.begin() + has_any_length)) {
    problem_ = "its shape is " + text_of(sizes_) + ", not " + text_of(form.shape);
    return false;
  }
  std::uint64_t count = 1, bytes;
  bool is_too_large = has_any_length && sizes_[0] < 0;
  for (const std::int64_t size : sizes_) {
    is_too_large |= __builtin_mul_overflow(count, static_cast<std::uint64_t>(size), &count);
  }
  is_too_large |= __builtin_mul_overflow(count, value_bytes_, &bytes) || bytes >> 48 != 0;
  const std::size_t found = content_.empty() ? alone_.size() : content_.size();
  const bool fills = content_.empty() && !has_any_length;
  if (is_too_large || (count != 0 && !fills && found < bytes) ||
      (count != 0 && !content_.empty() && found != bytes)) {
    problem_ = "it holds " + std::to_string(found) + " bytes of values, which its shape " +
               text_of(sizes_) + " does not fit";
    return false;
  }
  values_ = static_cast<std::size_t>(count);
  const bool is_boolean = form.type == kBoolean.number;
  if (is_boolean && count != 0 &&
      std::ranges::any_of(content_, [](auto value) { return value > 1; })) {
    problem_ = "its content has booleans that are neither 0 nor 1";
    return false;
  }
  return true;
}

void SerializedTensor::write(std::uint8_t* out) const noexcept {
  const std::size_t wanted = bytes();
  if (wanted == 0) return;
  if (!content_.empty()) {
    std::memcpy(out, content_.data(), wanted);
    return;
  }
  // Like TensorFlow, repeats the last value, or fills with zeros if there is none.
  std::size_t done = std::min(wanted, alone_.size());
  if (done == 0) {
    std::memset(out, 0, wanted);
    return;
  }
  std::memcpy(out, alone_.data(), done);
  for (; done < wanted; done += value_bytes_) {
    std::memcpy(out + done, out + done - value_bytes_, value_bytes_);
  }
}

// The values of a number of bytes, as protobuf and TensorFlow narrow them.
void SerializedTensor::add(std::uint64_t value) {
  if (field_ == kBoolean.field) value = value != 0;
  std::uint8_t bytes[sizeof value];
  store_little_endian(bytes, value);
  alone_.insert(alone_.end(), bytes, bytes + value_bytes_);
}

// Values of other types than the tensor's must be sound, too, but do not count.
const std::uint8_t* SerializedTensor::read_values(std::uint32_t tag, const std::uint8_t* next,
                                                  const std::uint8_t* end) {
  const std::uint32_t field = tag >> 3;
  const unsigned wire_type = wire_type_of(field);
  const std::uint8_t* values_end = next;
  if ((tag & 7) == 2) {
    std::size_t size;
    next = read_size(next, end, size);
    if (next == nullptr || size == 0) return next;
    values_end = end = next + size;
  }
  do {
    std::uint64_t value;
    next = read_number(wire_type, next, end, value);
    if (next != nullptr && field == field_) add(value);
  } while (next != nullptr && next < values_end);
  return next;
}

const std::uint8_t* SerializedTensor::read_shape(WireBytes shape) {
  const std::uint8_t *next = shape.data(), *const end = next + shape.size();
  std::uint32_t tag;
  while (next != end) {
    next = read_tag(next, end, tag);
    if (next == nullptr) return nullptr;
    if (tag == (kSize << 3 | 2)) {
      std::size_t size;
      next = read_size(next, end, size);
      if (next == nullptr || sizes_.size() == kMaxRank) return nullptr;
      const std::uint8_t* const dimension_end = next + size;
      std::uint64_t value = 0;
      while (next != dimension_end) {
        next = read_tag(next, dimension_end, tag);
        if (next == nullptr) return nullptr;
        is_unusual_ |= tag >> 3 != kSizeOfDimension;  // a name must be UTF-8
        next = tag == kSizeOfDimension << 3 ? tfrfast::read_value(next, dimension_end, value)
                                            : skip_value(tag, next, dimension_end, 2);
        if (next == nullptr) return nullptr;
      }
      sizes_.push_back(static_cast<std::int64_t>(value));
    } else {  // like TensorFlow, believes the sizes of a tensor of unknown rank
      next = skip_value(tag, next, end, 1);
    }
    if (next == nullptr) return nullptr;
  }
  return end;
}

const std::uint8_t* SerializedTensor::read(WireBytes string) {
  const std::uint8_t *next = string.data(), *const end = next + string.size();
  std::uint32_t tag;
  while (next != end) {
    next = read_tag(next, end, tag);
    if (next == nullptr) return nullptr;
    std::uint64_t value = 0;
    std::size_t size;
    const std::uint32_t field = tag >> 3;
    const unsigned wire_type = tag & 7;
    if (tag == kType << 3) {
      next = tfrfast::read_value(next, end, value);
      type_ = static_cast<std::uint32_t>(value);
    } else if (wire_type == 2 && (field == kShape || field == kContent)) {
      next = read_size(next, end, size);
      if (next == nullptr) return nullptr;
      const WireBytes bytes{next, size};
      next += size;
      if (field == kContent) {
        content_ = bytes;
      } else if (read_shape(bytes) == nullptr) {
        return nullptr;
      }
    } else if (std::ranges::find(kNumbers, field) != std::end(kNumbers) &&
               (wire_type == 2 || wire_type == wire_type_of(field))) {
      next = read_values(tag, next, end);
    } else {
      is_unusual_ |= field == kResource || field == kVariant;
      next = skip_value(tag, next, end, 0);
    }
    if (next == nullptr) return nullptr;
  }
  return end;
}

}  // namespace tfrfast
