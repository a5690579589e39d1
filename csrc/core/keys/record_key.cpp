#include "core/keys/record_key.h"

#include <algorithm>
#include <cstring>

#include "core/example/entries.h"
#include "core/example/list.h"

namespace tfrfast {
namespace {

bool equal(WireBytes one, WireBytes other) noexcept {
  return one.size() == other.size() &&
         (one.empty() || std::memcmp(one.data(), other.data(), one.size()) == 0);
}

// Finds the feature's values. Empty if the feature holds another kind of list.
FeatureList list_of(WireBytes record, std::string_view name, ListKind wanted) noexcept {
  const WireBytes wanted_key{reinterpret_cast<const std::uint8_t*>(name.data()), name.size()};
  WireBytes found;
  bool is_there = false;
  const std::uint8_t* const stopped = for_each_entry(record, [&](WireBytes key, WireBytes feature) {
    if (!equal(key, wanted_key)) return;
    // As in decoding features with a shape, an empty Feature does not replace an earlier one.
    ListKind kind;
    if (read_list_kind(feature, kind) && kind == ListKind::none) return;
    found = feature;
    is_there = true;
  });
  ListKind kind;
  FeatureList list;
  list.form = ListForm::malformed;
  if (stopped != nullptr || !is_there || !read_list_kind(found, kind) || kind != wanted)
    return list;
  return find_list(found, kind);
}

}  // namespace

bool record_has_key(WireBytes record, std::string_view name, WireBytes key) noexcept {
  const FeatureList list = list_of(record, name, ListKind::bytes);
  if (list.form != ListForm::unpacked) return false;
  WireReader reader(list.values);
  WireBytes value;
  return reader.take(bytes_tag(1)) && reader.read_bytes(value) && reader.at_end() &&
         equal(value, key);
}

bool record_has_key(WireBytes record, std::string_view name, std::int64_t key) noexcept {
  const FeatureList list = list_of(record, name, ListKind::ints);
  if (list.form != ListForm::unpacked && list.form != ListForm::packed) return false;
  WireReader reader(list.values);
  std::uint64_t value;
  if (list.form == ListForm::unpacked && !reader.take(varint_tag(1))) return false;
  return reader.read_varint(value) && reader.at_end() && static_cast<std::int64_t>(value) == key;
}

}  // namespace tfrfast
