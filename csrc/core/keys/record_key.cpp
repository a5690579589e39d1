#include "core/keys/record_key.h"

#include <algorithm>
#include <cstring>

#include "core/example/entries.h"
#include "core/example/list.h"
#include "core/keys/key_hash.h"

namespace tfrfast {
namespace {

bool equal(WireBytes one, WireBytes other) noexcept {
  return one.size() == other.size() &&
         (one.empty() || std::memcmp(one.data(), other.data(), one.size()) == 0);
}

// Finds the feature, and the kind of its list. False if the record is not an Example. An absent
// feature is an empty one.
bool find_feature(WireBytes record, std::string_view name, WireBytes& found,
                  ListKind& kind) noexcept {
  const WireBytes wanted{reinterpret_cast<const std::uint8_t*>(name.data()), name.size()};
  found = {};
  const std::uint8_t* const stopped = for_each_entry(record, [&](WireBytes key, WireBytes feature) {
    // As in decoding features with a shape, an empty Feature does not replace an earlier one.
    if (!feature.empty() && equal(key, wanted)) found = feature;
  });
  return stopped == nullptr && read_list_kind(found, kind);
}

// Finds the feature's values. Malformed if the feature holds another kind of list.
FeatureList list_of(WireBytes record, std::string_view name, ListKind wanted) noexcept {
  WireBytes found;
  ListKind kind;
  if (!find_feature(record, name, found, kind) || kind != wanted) {
    return {ListForm::malformed, {}, nullptr};
  }
  return find_list(found, kind);
}

bool read_one(const FeatureList& list, WireBytes& value) noexcept {
  WireReader reader(list.values);
  return list.form == ListForm::unpacked && reader.take(bytes_tag(1)) && reader.read_bytes(value) &&
         reader.at_end();
}

bool read_one(const FeatureList& list, std::int64_t& value) noexcept {
  if (list.form != ListForm::unpacked && list.form != ListForm::packed) return false;
  WireReader reader(list.values);
  std::uint64_t bits;
  if (list.form == ListForm::unpacked && !reader.take(varint_tag(1))) return false;
  if (!reader.read_varint(bits) || !reader.at_end()) return false;
  value = static_cast<std::int64_t>(bits);
  return true;
}

}  // namespace

bool record_has_key(WireBytes record, std::string_view name, WireBytes key) noexcept {
  WireBytes value;
  return read_one(list_of(record, name, ListKind::bytes), value) && equal(value, key);
}

bool record_has_key(WireBytes record, std::string_view name, std::int64_t key) noexcept {
  std::int64_t value;
  return read_one(list_of(record, name, ListKind::ints), value) && value == key;
}

KeyForm hash_key_of(WireBytes record, std::string_view name, std::uint64_t& hash) noexcept {
  WireBytes found, text;
  ListKind kind;
  std::int64_t number;
  if (!find_feature(record, name, found, kind)) return KeyForm::unfit;
  if (kind == ListKind::none) return KeyForm::absent;
  const FeatureList list = find_list(found, kind);
  if (list.form != ListForm::malformed && list.values.empty()) return KeyForm::absent;
  if (kind == ListKind::bytes && read_one(list, text)) {
    hash = hash_of_key(text);
  } else if (kind == ListKind::ints && read_one(list, number)) {
    hash = ~hash_of_key(number);  // another than that of the same eight bytes
  } else {
    return KeyForm::unfit;
  }
  return KeyForm::one;
}

}  // namespace tfrfast
