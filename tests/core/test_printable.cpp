#include <doctest/doctest.h>

#include <string>

#include "core/base/error.h"
#include "core/base/printable.h"

using namespace tfrfast;

TEST_CASE("printable text in any language comes back as it is") {
  for (const char* text :
       {"", "train-00000-of-00002", "\\x1b '\"~", "Größe", "日本語", "👩‍🚀"}) {
    CHECK(printable(text) == text);
  }
}

TEST_CASE("what a terminal would obey or hide is an escape") {
  CHECK(printable("a\x1b[2Jb") == "a\\x1b[2Jb");
  CHECK(printable(std::string("\0\a\b\t\n\r\x7f", 7)) == "\\x00\\x07\\x08\\x09\\x0a\\x0d\\x7f");
  CHECK(printable("\xc2\x9b 31m") == "\\x9b 31m");          // CSI as one character
  CHECK(printable("a\xe2\x80\xae txt") == "a\\u202e txt");  // right to left
  CHECK(printable("\xe2\x80\xa8") == "\\u2028");            // the end of a line
  CHECK(printable("\xf3\xa0\x81\x81") == "\\U000e0041");    // a tag character
}

TEST_CASE("bytes that are not UTF-8 are escapes, one by one") {
  CHECK(printable("a\xff z") == "a\\xff z");
  CHECK(printable("\xe2\x80") == "\\xe2\\x80");             // cut short
  CHECK(printable("\xc0\x9b") == "\\xc0\\x9b");             // an overlong ESC
  CHECK(printable("\xed\xa0\x80!") == "\\xed\\xa0\\x80!");  // a surrogate
}

TEST_CASE("an error is printable, and its place has the name as it is") {
  const Error error(ErrorKind::corrupt, "Shard 'a\x1b[1m' is corrupt.", {"a\x1b[1m", {}, {}});
  CHECK(error.message() == "Shard 'a\\x1b[1m' is corrupt.");
  CHECK(error.place().path == "a\x1b[1m");
}
