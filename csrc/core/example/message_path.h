// The path from a protobuf message to one of its fields, or to a field of a message inside it, with
// all facts from the descriptor that reading the field takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/example/value_type.h"

namespace tfrfast {

// The enumerators have the numbers of descriptor.proto.
enum class FieldType : std::uint8_t {
  none = 0,
  float64 = 1,
  float32 = 2,
  int64 = 3,
  uint64 = 4,
  int32 = 5,
  fixed64 = 6,
  fixed32 = 7,
  boolean = 8,
  string = 9,
  group = 10,
  message = 11,
  bytes = 12,
  uint32 = 13,
  enumeration = 14,
  sfixed32 = 15,
  sfixed64 = 16,
  sint32 = 17,
  sint64 = 18,
};

// The wire type of a single value.
unsigned wire_type_of(FieldType type) noexcept;
inline bool is_message(FieldType type) noexcept {
  return type == FieldType::message || type == FieldType::group;
}
inline bool is_string(FieldType type) noexcept {
  return type == FieldType::string || type == FieldType::bytes;
}

struct EnumName {
  std::int32_t number = 0;
  std::string name;

  bool operator==(const EnumName&) const = default;
};

struct MessageField {
  std::uint32_t number = 0;
  FieldType type = FieldType::none;
  bool repeated = false;
  bool checks_utf8 = false;
  bool is_closed = false;           // of an enum: a number without a name is an unknown field
  std::vector<EnumName> names;      // of an enum: the first name of each number, in their order
  std::vector<MessageField> oneof;  // the members of its oneof: what says when they are set
  std::vector<MessageField> entry;  // of a map: the key and the value of an entry

  bool is_map() const noexcept { return !entry.empty(); }
  bool operator==(const MessageField&) const = default;
};

enum class PathContent : std::uint8_t {
  values,
  names,     // of an enum, as strings
  presence,  // whether the message has the field
};

struct MessagePath {
  std::string message;               // the full name of the record's message
  std::vector<MessageField> fields;  // all but the last are messages
  PathContent content = PathContent::values;

  ValueType value_type() const noexcept;
};

}  // namespace tfrfast
