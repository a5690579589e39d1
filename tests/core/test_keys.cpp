#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "core/keys/key_hash.h"
#include "core/keys/key_table.h"
#include "core/keys/record_key.h"
#include "wire_examples.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

bool has(const std::string& record, const std::string& key) {
  return record_has_key(wire_bytes(record), "id", wire_bytes(key));
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
      example({entry("x", strings({"cat"})), entry("id", strings({"dog"})), entry("id2", "")});
  CHECK(has(record, "dog"));
  for (const char* other : {"cat", "do", "dogs", ""}) CHECK(!has(record, other));
  CHECK(!record_has_key(wire_bytes(record), "id", std::int64_t{3}));
  CHECK(!has(example({entry("id", strings({"dog", "cat"}))}), "dog"));
  CHECK(!has(example({entry("id", strings({}))}), ""));
  CHECK(has(example({entry("id", strings({""}))}), ""));
  CHECK(!has("", ""));
}

TEST_CASE("the last of several features of one name counts") {
  const std::string first = entry("id", strings({"one"}));
  const std::string last = entry("id", strings({"two"}));
  CHECK(has(example({first, last}), "two"));
  CHECK(!has(example({first, last}), "one"));
  CHECK(has(example({first}) + example({last}), "two"));
  CHECK(has(example({first, entry("id", "")}), "one"));
}

TEST_CASE("integers are keys, packed or not") {
  const std::string packed = field(3, field(1, "\x96\x01"));
  const std::string unpacked = field(3, "\x08\x96\x01");
  const std::string two = ints({5, 6});
  for (const std::string& feature : {packed, unpacked}) {
    const std::string record = example({entry("id", feature)});
    CHECK(record_has_key(wire_bytes(record), "id", std::int64_t{150}));
    CHECK(!record_has_key(wire_bytes(record), "id", std::int64_t{151}));
    CHECK(!has(record, "\x96\x01"));
  }
  CHECK(!record_has_key(wire_bytes(example({entry("id", two)})), "id", std::int64_t{5}));
}

TEST_CASE("records that are cut short or damaged anywhere have keys or none, and are not overrun") {
  const std::string record = example({entry("x", ints({5})), entry("id", strings({"dog"}))});
  for (std::size_t length = 0; length < record.size(); ++length) {
    const std::vector<std::uint8_t> part(record.begin(),
                                         record.begin() + static_cast<std::ptrdiff_t>(length));
    (void)record_has_key(part, "id", wire_bytes("dog"));
    (void)record_has_key(part, "x", std::int64_t{5});
  }
  for (std::size_t place = 0; place < record.size(); ++place) {
    for (int bit = 0; bit < 8; ++bit) {
      std::vector<std::uint8_t> changed(record.begin(), record.end());
      changed[place] = static_cast<std::uint8_t>(changed[place] ^ 1 << bit);
      (void)record_has_key(changed, "id", wire_bytes("dog"));
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
  CHECK(hash_of_key(wire_bytes("a")) != hash_of_key(wire_bytes(std::string("a\0", 2))));
}
