#include "core/example/list.h"

#include "core/example/varints.h"

namespace tfrfast {

const char* name_of(ListKind kind) noexcept {
  switch (kind) {
    case ListKind::bytes:
      return "string";
    case ListKind::floats:
      return "float";
    case ListKind::ints:
      return "int64";
    case ListKind::none:
      break;
  }
  return "none";
}

bool read_list_kind(WireBytes feature, ListKind& kind) noexcept {
  kind = ListKind::none;
  if (feature.empty()) return true;
  for (const ListKind candidate : {ListKind::bytes, ListKind::floats, ListKind::ints}) {
    if (feature[0] == bytes_tag(static_cast<unsigned>(candidate))) {
      kind = candidate;
      return true;
    }
  }
  return false;
}

FeatureList find_list(WireBytes feature, ListKind kind, Dialect dialect) noexcept {
  const FeatureList malformed{ListForm::malformed, {}, nullptr};
  WireReader reader(feature.subspan(1));
  std::uint32_t length;
  if (!reader.read_length(length)) return malformed;
  WireReader list(reader.enter(length));
  if (kind == ListKind::bytes) return {ListForm::unpacked, list.rest(), reader.position()};
  if (list.at_end()) {
    if (length != 0 && dialect == Dialect::sequence_example) return malformed;
    return {ListForm::empty, {}, reader.position()};
  }
  if (list.take(bytes_tag(1))) {
    std::uint32_t packed;
    if (!list.read_length(packed)) return malformed;
    if (kind == ListKind::floats && dialect == Dialect::example) {
      packed -= packed % 4;
      if (packed > list.bytes_left()) return malformed;
    }
    const WireBytes values = list.enter(packed);
    if (kind == ListKind::floats && values.size() % 4 != 0) return malformed;
    return {ListForm::packed, values, list.position()};
  }
  const std::uint8_t tag = kind == ListKind::ints ? varint_tag(1) : fixed32_tag(1);
  if (!list.next_is(tag)) return malformed;
  return {ListForm::unpacked, list.rest(), reader.position()};
}

std::size_t count_values(const FeatureList& list, ListKind kind) noexcept {
  if (list.form == ListForm::packed) {
    return kind == ListKind::ints ? count_varints(list.values) : list.values.size() / 4;
  }
  std::size_t count = 0;
  WireReader reader(list.values);
  while (!reader.at_end() && reader.skip_field()) ++count;
  return count;
}

}  // namespace tfrfast
