#include <doctest/doctest.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/encoding.h"
#include "core/base/error.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

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
std::string refusal_of(const std::string& bytes, Read read) {
  return refusal([&] {
    Decoder decoder(kThing, bytes);
    read(decoder);
  });
}

struct Part {
  std::uint32_t number = 0;
  std::int32_t integer = 0;
  std::string text;
  friend bool operator==(const Part&, const Part&) = default;
};
struct Whole {
  std::vector<Part> parts;
  std::map<std::string, double> reals;
  std::set<std::string> names;
  std::optional<bool> flag;
  std::vector<std::uint16_t> table;
  friend bool operator==(const Whole&, const Whole&) = default;
};
constexpr auto code_whole = [](auto& coder, auto& whole) {
  coder.nested([&] {
    coder.list(whole.parts, [&](auto& part) {
      coder.number(part.number);
      coder.integer(part.integer);
      coder.string(part.text);
      coder.require(part.number != 13, "it has a 13");
    });
  });
  coder.by_name(whole.reals, [&](auto& real) { coder.real(real); });
  coder.names(whole.names);
  coder.optional(whole.flag, [&](auto& flag) { coder.flag(flag); });
  coder.table(whole.table);
};

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
  CHECK(refusal_of(Encoder(kOther).finish(), kNothing) ==
        "This is not a thing of this version of tfrfast." + kAgain);
  CHECK(refusal_of("", kNothing) == "This is not a thing of this version of tfrfast." + kAgain);
  CHECK(refusal_of(Encoder(kOlder).finish(), kNothing) ==
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
  CHECK(refusal_of(good + "x", kNothing) ==
        "This thing is damaged: its bytes do not match their fingerprint." + kAgain);
}

TEST_CASE("a description is read to its end and no further") {
  const std::string early = "This thing is damaged: it ends too early." + kAgain;
  CHECK(refusal_of(thing_of({}), [](Decoder& decoder) { decoder.number(); }) == early);
  CHECK(refusal_of(thing_of({9, 0}), [](Decoder& decoder) { decoder.string(); }) == early);
  CHECK(refusal_of(thing_of({2, 0}), [](Decoder& decoder) { decoder.integers(); }) == early);
  CHECK(refusal_of(thing_of({9, 0}), [](Decoder& decoder) { decoder.count(); }) == early);
  const std::uint64_t huge = ~std::uint64_t{0};
  CHECK(refusal_of(thing_of({huge, 0}), [](Decoder& decoder) { decoder.string(); }) == early);
  CHECK(refusal_of(thing_of({huge / 8 + 2, 0}), [](Decoder& decoder) { decoder.integers(); }) ==
        early);
  CHECK(refusal_of(thing_of({2}), [](Decoder& decoder) { decoder.flag(); }) ==
        "This thing is damaged: a number from 0 to 1 is 2." + kAgain);
  CHECK(refusal_of(thing_of({1}), [](Decoder& decoder) { decoder.finish(); }) ==
        "This thing is damaged: 8 bytes follow its end." + kAgain);
}

TEST_CASE("a description is written and read by one list of its members") {
  const Whole whole{{{7, -3, "a"}, {~0u, 5, ""}}, {{"b", 0.5}, {"c", -1}}, {"d"}, true, {1, 2, 3}};
  CHECK(decode_as<Whole>(kThing, encode_as(kThing, whole, code_whole), code_whole) == whole);
  CHECK(decode_as<Whole>(kThing, encode_as(kThing, Whole(), code_whole), code_whole) == Whole());
}

TEST_CASE("a description that no Encoder wrote is refused") {
  const auto read = [](Decoder& decoder) {
    Whole whole;
    code_whole(decoder, whole);
  };
  const std::string damaged = "This thing is damaged: ";
  CHECK(refusal_of(thing_of({1, 13, 0, 0}), read) == damaged + "it has a 13." + kAgain);
  CHECK(refusal_of(thing_of({1, std::uint64_t{1} << 32, 0, 0}), read) ==
        damaged + "a number from 0 to 4294967295 is 4294967296." + kAgain);
  CHECK(refusal_of(thing_of({1, 1, std::uint64_t{1} << 31, 0}), read) ==
        damaged + "an integer of 32 bits is 2147483648." + kAgain);
  CHECK(refusal_of(thing_of({1, 1, ~(std::uint64_t{1} << 31), 0}), read) ==
        damaged + "an integer of 32 bits is -2147483649." + kAgain);
  CHECK(refusal_of(thing_of({0, 2, 0, 0, 0, 0}), read) ==
        damaged + "names have another order." + kAgain);
  Encoder odd(kThing);
  for (int i = 0; i < 4; ++i) odd.number(0);
  odd.string("x");
  CHECK(refusal_of(odd.finish(), read) ==
        damaged + "a table has no whole number of items." + kAgain);
}
