#include <doctest/doctest.h>

#include <string>

#include "core/base/utf8.h"

using namespace tfrfast;

namespace {

bool is_text(const std::string& text) {
  return is_utf8({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

// The UTF-8 of the character, which need not exist.
std::string encoded(unsigned character) {
  const auto continued = [&](unsigned shift) {
    return static_cast<char>(0x80 | (character >> shift & 0x3f));
  };
  if (character < 0x80) return {static_cast<char>(character)};
  if (character < 0x800) return {static_cast<char>(0xc0 | character >> 6), continued(0)};
  if (character < 0x10000) {
    return {static_cast<char>(0xe0 | character >> 12), continued(6), continued(0)};
  }
  return {static_cast<char>(0xf0 | character >> 18), continued(12), continued(6), continued(0)};
}

}  // namespace

TEST_CASE("every character is text, wherever it stands, and nothing that is cut short") {
  for (unsigned character = 0; character < 0x120000; character += character < 0x900 ? 1 : 61) {
    const bool is_character = character < 0x110000 && (character < 0xd800 || character > 0xdfff);
    const std::string text = encoded(character);
    for (const std::size_t before : {0u, 3u, 8u}) {
      const std::string padded = std::string(before, 'x') + text;
      CHECK(is_text(padded + "yyyyyyyyy") == is_character);
      CHECK(is_text(padded) == is_character);
      if (text.size() > 1) CHECK(!is_text(padded.substr(0, padded.size() - 1)));
    }
  }
}

TEST_CASE("the bounds of characters are kept") {
  for (const unsigned character :
       {0x7fu, 0x80u, 0x7ffu, 0x800u, 0xd7ffu, 0xe000u, 0xffffu, 0x10000u, 0x10ffffu}) {
    CHECK(is_text(encoded(character)));
  }
  for (const unsigned character : {0xd800u, 0xdfffu, 0x110000u})
    CHECK(!is_text(encoded(character)));
  for (const char* overlong : {"\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf"}) {
    CHECK(!is_text(overlong));
  }
  CHECK(!is_text("\x80"));
  CHECK(!is_text("\xff"));
  CHECK(!is_text("\xe2\x28\xa1"));
}
