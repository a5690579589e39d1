#include "core/example/message_path.h"

namespace tfrfast {
unsigned wire_type_of(FieldType type) noexcept {
  switch (type) {
    case FieldType::float64:
    case FieldType::fixed64:
    case FieldType::sfixed64:
      return 1;
    case FieldType::string:
    case FieldType::message:
    case FieldType::bytes:
      return 2;
    case FieldType::group:
      return 3;
    case FieldType::float32:
    case FieldType::fixed32:
    case FieldType::sfixed32:
      return 5;
    default:
      return 0;
  }
}

ValueType MessagePath::value_type() const noexcept {
  if (content == PathContent::presence) return ValueType::boolean;
  if (content == PathContent::names) return ValueType::bytes;
  switch (fields.back().type) {
    case FieldType::float64:
      return ValueType::float64;
    case FieldType::float32:
      return ValueType::float32;
    case FieldType::int64:
    case FieldType::sint64:
    case FieldType::sfixed64:
      return ValueType::int64;
    case FieldType::uint64:
    case FieldType::fixed64:
      return ValueType::uint64;
    case FieldType::int32:
    case FieldType::sint32:
    case FieldType::sfixed32:
    case FieldType::enumeration:
      return ValueType::int32;
    case FieldType::uint32:
    case FieldType::fixed32:
      return ValueType::uint32;
    case FieldType::boolean:
      return ValueType::boolean;
    default:
      return ValueType::bytes;
  }
}

}  // namespace tfrfast
