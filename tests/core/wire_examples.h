// Examples in protobuf's wire format, by hand.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "core/example/wire.h"

namespace tfrfast::testing {

inline std::string field(int number, std::string_view payload) {
  std::string out(1, static_cast<char>(number << 3 | 2));
  std::size_t length = payload.size();
  for (; length >= 0x80; length >>= 7) out += static_cast<char>(length | 0x80);
  out += static_cast<char>(length);
  return out.append(payload);
}

inline std::string ints(std::initializer_list<int> small_values) {
  std::string packed;
  for (const int value : small_values) packed += static_cast<char>(value);
  return field(3, field(1, packed));
}

inline std::string strings(std::initializer_list<std::string_view> values) {
  std::string list;
  for (const std::string_view value : values) list += field(1, value);
  return field(1, list);
}

inline std::string entry(std::string_view key, std::string_view feature) {
  return field(1, field(1, key) + field(2, feature));
}

inline std::string example(std::initializer_list<std::string> entries) {
  std::string map;
  for (const std::string& one : entries) map += one;
  return field(1, map);
}

inline WireBytes wire_bytes(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

}  // namespace tfrfast::testing
