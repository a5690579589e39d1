// The types of a column's values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/example/list.h"

namespace tfrfast {

enum class ValueType : std::uint8_t {
  bytes,
  float32,
  int64,
  int32,
  int16,
  int8,
  uint32,
  uint16,
  uint8,
  boolean,
  float64,  // only in messages that are not Examples
  uint64,   // likewise
  raw,      // one byte string of exactly `raw_bytes` bytes, copied unchanged
  image,    // one encoded image, as pixels
  tensor,   // one serialized TensorProto, as its values
};

const char* name_of(ValueType type) noexcept;
ValueType value_type_named(std::string_view name);  // throws Error(invalid)
std::vector<const char*> names_of_value_types(ListKind kind);

ListKind list_kind_of(ValueType type) noexcept;
std::size_t item_bytes_of(ValueType type) noexcept;  // 0 for strings, whose sizes vary

}  // namespace tfrfast
