#include "core/example/message_path.h"

namespace tfrfast {
namespace {

void encode_fields(Encoder& encoder, const std::vector<MessageField>& fields) {
  encoder.number(fields.size());
  for (const MessageField& field : fields) {
    encoder.number(field.number);
    encoder.choice(field.type);
    encoder.flag(field.repeated);
    encoder.flag(field.checks_utf8);
    encoder.flag(field.is_closed);
    encoder.number(field.names.size());
    for (const EnumName& each : field.names) {
      encoder.integer(each.number);
      encoder.string(each.name);
    }
    encode_fields(encoder, field.oneof);
    encode_fields(encoder, field.entry);
  }
}

std::vector<MessageField> decode_fields(Decoder& decoder) {
  const Decoder::Level level(decoder);
  std::vector<MessageField> fields;
  const std::size_t count = decoder.count();
  for (std::size_t i = 0; i < count; ++i) {
    MessageField& field = fields.emplace_back();
    field.number = decoder.small_number();
    field.type = decoder.choice(FieldType::sint64);
    field.repeated = decoder.flag();
    field.checks_utf8 = decoder.flag();
    field.is_closed = decoder.flag();
    const std::size_t names = decoder.count();
    for (std::size_t each = 0; each < names; ++each) {
      const std::int64_t number = decoder.integer();
      const auto narrow = static_cast<std::int32_t>(number);
      if (narrow != number) decoder.refuse("an enum's number has more than 32 bits");
      field.names.push_back({narrow, std::string(decoder.string())});
    }
    field.oneof = decode_fields(decoder);
    field.entry = decode_fields(decoder);
  }
  return fields;
}

}  // namespace

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

void encode_path(Encoder& encoder, const MessagePath& path) {
  encoder.string(path.message);
  encode_fields(encoder, path.fields);
  encoder.choice(path.content);
}

MessagePath decode_path(Decoder& decoder) {
  MessagePath path;
  path.message = decoder.string();
  path.fields = decode_fields(decoder);
  path.content = decoder.choice(PathContent::presence);
  return path;
}

}  // namespace tfrfast
