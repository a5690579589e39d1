#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/base/encoding.h"
#include "core/base/error.h"

using namespace tfrfast;

namespace {

constexpr EncodedKind kThing{"thing", "tfTH", 3};
constexpr EncodedKind kOther{"other", "tfOT", 3};
constexpr EncodedKind kOlder{"thing", "tfTH", 2};

std::string thing() {
  Encoder encoder(kThing);
  encoder.number(~std::uint64_t{0});
  encoder.integer(-5);
  encoder.flag(true);
  encoder.string("some text");
  encoder.integers(std::vector<std::int64_t>{7, -8});
  return encoder.finish();
}

// An encoding of these numbers, with the right fingerprint.
std::string thing_of(std::initializer_list<std::uint64_t> numbers) {
  Encoder encoder(kThing);
  for (const std::uint64_t number : numbers) encoder.number(number);
  return encoder.finish();
}

template <class Read>
std::string refusal(const std::string& bytes, Read read) {
  try {
    Decoder decoder(kThing, bytes);
    read(decoder);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::invalid);
    return error.message();
  }
  return "not refused";
}

constexpr auto kNothing = [](Decoder&) {};
const std::string kAgain = " Make the thing, or the graph that holds it, again.";

}  // namespace

TEST_CASE("what was encoded is decoded") {
  const std::string bytes = thing();
  Decoder decoder(kThing, bytes);
  CHECK(decoder.number() == ~std::uint64_t{0});
  CHECK(decoder.integer() == -5);
  CHECK(decoder.flag());
  CHECK(decoder.string() == "some text");
  CHECK(decoder.integers() == std::vector<std::int64_t>{7, -8});
  decoder.finish();
}

TEST_CASE("things that differ have heads that differ") {
  CHECK(head_of(thing()) == head_of(thing()));
  CHECK(head_of(thing_of({1})) != head_of(thing_of({2})));
  CHECK(head_of(thing_of({0})) != head_of(thing_of({0, 0})));
}

TEST_CASE("bytes of another kind or version are refused") {
  CHECK(refusal(Encoder(kOther).finish(), kNothing) ==
        "This is not a thing of this version of tfrfast." + kAgain);
  CHECK(refusal("", kNothing) == "This is not a thing of this version of tfrfast." + kAgain);
  CHECK(refusal(Encoder(kOlder).finish(), kNothing) ==
        "This thing is encoded in version 2, and this tfrfast reads version 3." + kAgain);
}

TEST_CASE("every changed, missing or added byte is noticed") {
  const std::string good = thing();
  for (std::size_t i = 0; i < good.size(); ++i) {
    CAPTURE(i);
    std::string changed = good;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    CHECK_THROWS_AS(Decoder(kThing, changed), Error);
    CHECK_THROWS_AS(Decoder(kThing, good.substr(0, i)), Error);
  }
  CHECK(refusal(good + "x", kNothing) ==
        "This thing is damaged: its bytes do not match their fingerprint." + kAgain);
}

TEST_CASE("a description is read to its end and no further") {
  const std::string early = "This thing is damaged: it ends too early." + kAgain;
  CHECK(refusal(thing_of({}), [](Decoder& decoder) { decoder.number(); }) == early);
  CHECK(refusal(thing_of({9, 0}), [](Decoder& decoder) { decoder.string(); }) == early);
  CHECK(refusal(thing_of({2, 0}), [](Decoder& decoder) { decoder.integers(); }) == early);
  CHECK(refusal(thing_of({9, 0}), [](Decoder& decoder) { decoder.count(); }) == early);
  const std::uint64_t huge = ~std::uint64_t{0};
  CHECK(refusal(thing_of({huge, 0}), [](Decoder& decoder) { decoder.string(); }) == early);
  CHECK(refusal(thing_of({huge / 8 + 2, 0}), [](Decoder& decoder) { decoder.integers(); }) ==
        early);
  CHECK(refusal(thing_of({2}), [](Decoder& decoder) { decoder.flag(); }) ==
        "This thing is damaged: a number from 0 to 1 is 2." + kAgain);
  CHECK(refusal(thing_of({1}), [](Decoder& decoder) { decoder.finish(); }) ==
        "This thing is damaged: 8 bytes follow its end." + kAgain);
}
