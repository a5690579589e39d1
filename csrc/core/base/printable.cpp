#include "core/base/printable.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "core/base/utf8.h"

namespace tfrfast {
namespace {

struct CodePoints {
  std::uint32_t first;
  std::uint32_t last;
};

// Unicode's categories Cc, Cf, Zl and Zp, and the noncharacters. The two joiners U+200C and U+200D
// are printable, because some scripts and many emoji need them.
constexpr CodePoints kUnprintable[] = {
    {0x0000, 0x001f},   {0x007f, 0x009f},   {0x00ad, 0x00ad},   {0x0600, 0x0605},
    {0x061c, 0x061c},   {0x06dd, 0x06dd},   {0x070f, 0x070f},   {0x0890, 0x0891},
    {0x08e2, 0x08e2},   {0x180e, 0x180e},   {0x200b, 0x200b},   {0x200e, 0x200f},
    {0x2028, 0x202e},   {0x2060, 0x206f},   {0xd800, 0xf8ff},   {0xfdd0, 0xfdef},
    {0xfeff, 0xfeff},   {0xfff0, 0xfffb},   {0xfffe, 0xffff},   {0x110bd, 0x110bd},
    {0x110cd, 0x110cd}, {0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
    {0xe0000, 0x10ffff}};

bool is_printable(std::uint32_t character) noexcept {
  if (character < 0x7f) return character >= 0x20;
  return std::none_of(
      std::begin(kUnprintable), std::end(kUnprintable),
      [&](const CodePoints& range) { return range.first <= character && character <= range.last; });
}

void append_escape(std::string& to, const char* form, std::uint32_t number) {
  char escape[16];
  std::snprintf(escape, sizeof escape, form, static_cast<unsigned>(number));
  to += escape;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  for (std::size_t next = 0; next < text.size();) {
    const auto byte = static_cast<std::uint8_t>(text[next]);
    // In UTF-8, the first byte determines the number of bytes.
    const std::size_t count = byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
    const std::string_view bytes = text.substr(next, count);
    const std::span encoded(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    if (bytes.size() < count || !is_utf8(encoded)) {
      append_escape(shown, "\\x%02x", byte);
      ++next;
      continue;
    }
    std::uint32_t character = count == 1 ? byte : byte & (0x7fu >> count);
    for (std::size_t i = 1; i < count; ++i) character = character << 6 | (encoded[i] & 0x3fu);
    if (is_printable(character)) {
      shown += bytes;
    } else {
      const char* const form = character < 0x100     ? "\\x%02x"
                               : character < 0x10000 ? "\\u%04x"
                                                     : "\\U%08x";
      append_escape(shown, form, character);
    }
    next += count;
  }
  return shown;
}

}  // namespace tfrfast
