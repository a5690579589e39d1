#include "core/arrow/field.h"

#include <charconv>
#include <cstdint>
#include <cstring>

#include "core/base/error.h"

namespace tfrfast {
namespace {

// The memory of an exported schema. Children that were not moved away are released with the schema.
struct ExportedSchema {
  std::string format;
  std::string name;
  std::string metadata;
  std::vector<ArrowSchema> children;
  std::vector<ArrowSchema*> pointers;
  ArrowSchema dictionary = {};

  ~ExportedSchema() {
    for (ArrowSchema& child : children) {
      if (child.release != nullptr) child.release(&child);
    }
    if (dictionary.release != nullptr) dictionary.release(&dictionary);
  }
};

void release_schema(ArrowSchema* schema) {
  delete static_cast<ExportedSchema*>(schema->private_data);
  schema->release = nullptr;
}

void append_number(std::string& text, std::size_t number) {
  const auto value = static_cast<std::int32_t>(number);
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  text.append(bytes, sizeof bytes);
}

std::string encoded(const std::vector<std::pair<std::string, std::string>>& metadata) {
  std::string text;
  if (metadata.empty()) return text;
  append_number(text, metadata.size());
  for (const auto& [key, value] : metadata) {
    append_number(text, key.size());
    text += key;
    append_number(text, value.size());
    text += value;
  }
  return text;
}

}  // namespace

std::size_t ArrowField::fixed_list_size() const {
  std::size_t size = 0;
  const char* const end = format.data() + format.size();
  const auto parsed = std::from_chars(format.data() + 3, end, size);
  if (parsed.ec != std::errc() || parsed.ptr != end || children.size() != 1) {
    throw Error(ErrorKind::invalid, "'" + format + "' is not a list of fixed size.");
  }
  return size;
}

std::size_t ArrowField::row_values() const {
  return is_fixed_list() ? fixed_list_size() * children[0].row_values() : 1;
}

const ArrowField& ArrowField::innermost() const noexcept {
  const ArrowField* field = this;
  while (field->is_fixed_list() && !field->children.empty()) field = &field->children[0];
  return *field;
}

void export_schema(const ArrowField& field, ArrowSchema* out) {
  auto owned = std::make_unique<ExportedSchema>();
  owned->format = field.format;
  owned->name = field.name;
  owned->metadata = encoded(field.metadata);
  owned->children.resize(field.children.size());
  for (std::size_t i = 0; i < field.children.size(); ++i) {
    export_schema(field.children[i], &owned->children[i]);
    owned->pointers.push_back(&owned->children[i]);
  }
  if (field.dictionary != nullptr) export_schema(*field.dictionary, &owned->dictionary);
  *out = {};
  out->format = owned->format.c_str();
  out->name = owned->name.c_str();
  out->metadata = owned->metadata.empty() ? nullptr : owned->metadata.data();
  out->flags = field.nullable ? ARROW_FLAG_NULLABLE : 0;
  out->n_children = static_cast<std::int64_t>(owned->children.size());
  out->children = owned->pointers.data();
  out->dictionary = field.dictionary != nullptr ? &owned->dictionary : nullptr;
  out->release = &release_schema;
  out->private_data = owned.release();
}

}  // namespace tfrfast
