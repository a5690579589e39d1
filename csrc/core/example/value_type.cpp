#include "core/example/value_type.h"

#include <iterator>

#include "core/base/choice.h"

namespace tfrfast {
namespace {

struct Facts {
  const char* name;
  ListKind kind;
  std::size_t item_bytes;
};

// In the order of the enum.
constexpr Facts kFacts[] = {
    {"bytes", ListKind::bytes, 0}, {"float32", ListKind::floats, 4}, {"int64", ListKind::ints, 8},
    {"int32", ListKind::ints, 4},  {"int16", ListKind::ints, 2},     {"int8", ListKind::ints, 1},
    {"uint32", ListKind::ints, 4}, {"uint16", ListKind::ints, 2},    {"uint8", ListKind::ints, 1},
    {"bool", ListKind::ints, 1},   {"float64", ListKind::none, 8},   {"uint64", ListKind::none, 8},
    {"raw", ListKind::bytes, 0},   {"image", ListKind::bytes, 0},    {"tensor", ListKind::bytes, 0},
};
static_assert(std::size(kFacts) == static_cast<std::size_t>(ValueType::tensor) + 1);

const Facts& facts_of(ValueType type) noexcept {
  return kFacts[static_cast<std::size_t>(type)];
}

}  // namespace

const char* name_of(ValueType type) noexcept {
  return facts_of(type).name;
}

ValueType value_type_named(std::string_view name) {
  const Facts& facts = find_choice("type", name, kFacts, &Facts::name);
  return static_cast<ValueType>(&facts - kFacts);
}

std::vector<const char*> names_of_value_types(ListKind kind) {
  std::vector<const char*> names;
  for (const Facts& facts : kFacts) {
    if (facts.kind == kind) names.push_back(facts.name);
  }
  return names;
}

ListKind list_kind_of(ValueType type) noexcept {
  return facts_of(type).kind;
}

std::size_t item_bytes_of(ValueType type) noexcept {
  return facts_of(type).item_bytes;
}

}  // namespace tfrfast
