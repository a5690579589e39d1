#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "core/keys/key_hash.h"
#include "core/keys/key_table.h"
#include "core/keys/record_key.h"

using namespace tfrfast;

namespace {

WireBytes wire_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// A field of the wire format whose payload is short.
std::string wire_field(int number, const std::string& payload) {
  return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(payload.size()) +
         payload;
}

std::string feature_entry(const std::string& name, const std::string& feature) {
  return wire_field(1, wire_field(1, name) + wire_field(2, feature));
}

std::string record_of(const std::string& entries) {
  return wire_field(1, entries);
}

std::string string_feature(const std::vector<std::string>& values) {
  std::string list;
  for (const std::string& value : values) list += wire_field(1, value);
  return wire_field(1, list);
}

bool has(const std::string& record, const std::string& key) {
  return record_has_key(wire_of(record), "id", wire_of(key));
}

}  // namespace

TEST_CASE("a table that is not sorted gives wrong entries, but none outside it") {
  std::mt19937_64 random(8);
  std::vector<std::uint64_t> hashes(300);
  for (std::uint64_t& hash : hashes) hash = random();
  const std::vector<std::uint8_t> numbers(3 * hashes.size(), 0xff);
  const KeyTable table(hashes, numbers.data(), 3);
  for (int i = 0; i < 3000; ++i) CHECK(table.first_entry(random()) <= hashes.size());
  CHECK(table.number(299) == 0xffffff);
}

TEST_CASE("a record has the key that it holds, and no other") {
  const std::string record =
      record_of(feature_entry("x", string_feature({"cat"})) +
                feature_entry("id", string_feature({"dog"})) + feature_entry("id2", ""));
  CHECK(has(record, "dog"));
  for (const char* other : {"cat", "do", "dogs", ""}) CHECK(!has(record, other));
  CHECK(!record_has_key(wire_of(record), "id", std::int64_t{3}));
  CHECK(!has(record_of(feature_entry("id", string_feature({"dog", "cat"}))), "dog"));
  CHECK(!has(record_of(feature_entry("id", string_feature({}))), ""));
  CHECK(has(record_of(feature_entry("id", string_feature({""}))), ""));
  CHECK(!has("", ""));
}

TEST_CASE("the last of several features of one name counts") {
  const std::string first = feature_entry("id", string_feature({"one"}));
  const std::string last = feature_entry("id", string_feature({"two"}));
  CHECK(has(record_of(first + last), "two"));
  CHECK(!has(record_of(first + last), "one"));
  CHECK(has(record_of(first) + record_of(last), "two"));
  CHECK(has(record_of(first + feature_entry("id", "")), "one"));
}

TEST_CASE("integers are keys, packed or not") {
  const std::string packed = wire_field(3, wire_field(1, "\x96\x01"));
  const std::string unpacked = wire_field(3, "\x08\x96\x01");
  const std::string two = wire_field(3, wire_field(1, "\x05\x06"));
  for (const std::string& feature : {packed, unpacked}) {
    const std::string record = record_of(feature_entry("id", feature));
    CHECK(record_has_key(wire_of(record), "id", std::int64_t{150}));
    CHECK(!record_has_key(wire_of(record), "id", std::int64_t{151}));
    CHECK(!has(record, "\x96\x01"));
  }
  CHECK(!record_has_key(wire_of(record_of(feature_entry("id", two))), "id", std::int64_t{5}));
}

TEST_CASE("records that are cut short or damaged anywhere have keys or none, and are not overrun") {
  const std::string record = record_of(feature_entry("x", wire_field(3, wire_field(1, "\x05"))) +
                                       feature_entry("id", string_feature({"dog"})));
  for (std::size_t length = 0; length < record.size(); ++length) {
    const std::vector<std::uint8_t> part(record.begin(),
                                         record.begin() + static_cast<std::ptrdiff_t>(length));
    (void)record_has_key(part, "id", wire_of("dog"));
    (void)record_has_key(part, "x", std::int64_t{5});
  }
  for (std::size_t place = 0; place < record.size(); ++place) {
    for (int bit = 0; bit < 8; ++bit) {
      std::vector<std::uint8_t> changed(record.begin(), record.end());
      changed[place] = static_cast<std::uint8_t>(changed[place] ^ 1 << bit);
      (void)record_has_key(changed, "id", wire_of("dog"));
      (void)record_has_key(changed, "x", std::int64_t{5});
    }
  }
}

TEST_CASE("a number has the hash of its bytes") {
  for (const std::int64_t number : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 62}) {
    std::uint8_t bytes[sizeof number];
    std::memcpy(bytes, &number, sizeof number);
    CHECK(hash_of_key(number) == hash_of_key(std::span<const std::uint8_t>(bytes)));
  }
  CHECK(hash_of_key(wire_of("a")) != hash_of_key(wire_of(std::string("a\0", 2))));
}
