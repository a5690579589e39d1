// A small hash for names and descriptions. The values are frozen: files and graphs hold them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tfrfast {

// FNV-1a, 64 bits. Not for adversaries.
class Fnv1a {
 public:
  void add(const void* bytes, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
      value_ = (value_ ^ static_cast<const std::uint8_t*>(bytes)[i]) * 0x100000001b3u;
    }
  }
  std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

inline std::uint64_t fnv1a(std::string_view text) noexcept {
  Fnv1a hash;
  hash.add(text.data(), text.size());
  return hash.value();
}

}  // namespace tfrfast
