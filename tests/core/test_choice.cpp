#include "core/base/choice.h"

#include <doctest/doctest.h>

#include <string>

#include "core/base/error.h"
#include "core/codec/codec.h"

namespace tfrfast {
namespace {

constexpr Choice<int> kSizes[] = {{"small", 1}, {"medium", 2}, {"large", 3}};
constexpr Choice<int> kAnswers[] = {{"yes", 1}, {"no", 0}};

template <class Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::invalid);
    return error.message();
  }
  return "not refused";
}

TEST_CASE("choice: a word finds its value") {
  for (const auto& each : kSizes) CHECK(choose("size", each.name, kSizes) == each.value);
}

TEST_CASE("choice: another word is refused with all that are allowed") {
  CHECK(refusal([] { choose("size", "tiny", kSizes); }) ==
        "size is \"tiny\", but must be \"small\", \"medium\" or \"large\".");
  CHECK(refusal([] { choose("answer", "", kAnswers); }) ==
        "answer is \"\", but must be \"yes\" or \"no\".");
  CHECK(refusal([] { choose("answer", "ye", kAnswers); }) != "not refused");
  CHECK(refusal([] { choose("answer", "yess", kAnswers); }) != "not refused");
}

TEST_CASE("choice: things with other facts are found by their names, too") {
  CHECK(find_choice("codec", "ZLIB", codecs(), &Codec::name).compression == Compression::zlib);
  CHECK(refusal([] { find_choice("codec", "zlib", codecs(), &Codec::name); }) ==
        "codec is \"zlib\", but must be \"GZIP\" or \"ZLIB\".");
}

}  // namespace
}  // namespace tfrfast
