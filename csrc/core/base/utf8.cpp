#include "core/base/utf8.h"

#include <cstring>

namespace tfrfast {
namespace {

// The number of bytes of a character with this first byte, and the bounds of the second byte. The
// bounds exclude overlong forms, surrogates and numbers past U+10FFFF.
struct Lead {
  std::size_t bytes;
  std::uint8_t low;
  std::uint8_t high;
};

Lead lead_of(std::uint8_t byte) noexcept {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xc2) return {0, 0, 0};
  if (byte < 0xe0) return {2, 0x80, 0xbf};
  if (byte == 0xe0) return {3, 0xa0, 0xbf};
  if (byte == 0xed) return {3, 0x80, 0x9f};
  if (byte < 0xf0) return {3, 0x80, 0xbf};
  if (byte == 0xf0) return {4, 0x90, 0xbf};
  if (byte < 0xf4) return {4, 0x80, 0xbf};
  if (byte == 0xf4) return {4, 0x80, 0x8f};
  return {0, 0, 0};
}

}  // namespace

bool is_utf8(std::span<const std::uint8_t> bytes) noexcept {
  std::size_t next = 0;
  while (next < bytes.size()) {
    std::uint64_t word;
    while (bytes.size() - next >= sizeof word) {
      std::memcpy(&word, bytes.data() + next, sizeof word);
      if ((word & 0x8080808080808080) != 0) break;
      next += sizeof word;
    }
    if (next == bytes.size()) break;
    const Lead lead = lead_of(bytes[next]);
    if (lead.bytes == 0 || lead.bytes > bytes.size() - next) return false;
    if (lead.bytes > 1 && (bytes[next + 1] < lead.low || bytes[next + 1] > lead.high)) return false;
    for (std::size_t i = 2; i < lead.bytes; ++i) {
      if ((bytes[next + i] & 0xc0) != 0x80) return false;
    }
    next += lead.bytes;
  }
  return true;
}

}  // namespace tfrfast
