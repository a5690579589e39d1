// Writes an entry of an Example's map of features, around the feature's values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "core/example/list.h"

namespace tfrfast {

// The beginning of an entry's content: the feature's name.
inline std::string key_field(std::string_view name) {
  std::uint8_t head[1 + kMaxVarintBytes];
  const std::uint8_t* const end = put_field_head(head, 1, name.size());
  std::string field(reinterpret_cast<const char*>(head), static_cast<std::size_t>(end - head));
  return field.append(name);
}

// The messages around `values_bytes` bytes of values. Values are packed into one field of the list
// only if there are any. A feature of kind `none` has no list.
class EntryHead {
 public:
  // `key` is a key_field(), which outlives the head.
  EntryHead(const std::string& key, ListKind kind, bool is_packed,
            std::uint64_t values_bytes) noexcept
      : key_(key),
        kind_(kind),
        is_packed_(is_packed && values_bytes != 0),
        values_bytes_(values_bytes),
        list_bytes_(is_packed_ ? field_bytes(values_bytes) : values_bytes),
        feature_bytes_(kind == ListKind::none ? 0 : field_bytes(list_bytes_)),
        content_bytes_(key.size() + field_bytes(feature_bytes_)) {}

  // The size of the whole entry, with its values.
  std::uint64_t entry_bytes() const noexcept { return field_bytes(content_bytes_); }

  // Writes everything before the values. Returns the place of the values.
  std::uint8_t* put(std::uint8_t* out) const noexcept {
    out = put_field_head(out, 1, content_bytes_);
    std::memcpy(out, key_.data(), key_.size());
    out = put_field_head(out + key_.size(), 2, feature_bytes_);
    if (kind_ == ListKind::none) return out;
    out = put_field_head(out, static_cast<unsigned>(kind_), list_bytes_);
    return is_packed_ ? put_field_head(out, 1, values_bytes_) : out;
  }

 private:
  const std::string& key_;
  ListKind kind_;
  bool is_packed_;
  std::uint64_t values_bytes_;
  std::uint64_t list_bytes_;  // of the Int64List, FloatList or BytesList
  std::uint64_t feature_bytes_;
  std::uint64_t content_bytes_;  // of the entry
};

}  // namespace tfrfast
