#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/example/fast_bmi2.h"
#include "core/example/varints.h"

using namespace tfrfast;

namespace {

const char* const kKernels[] = {"portable", "bmi2", "avx512"};

void append_varint(std::vector<std::uint8_t>& bytes, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<std::uint8_t>(value | 0x80));
  bytes.push_back(static_cast<std::uint8_t>(value));
}

// The varints in memory of exactly their size, with `before` and `after` readable bytes around.
struct Placed {
  Placed(const std::vector<std::uint8_t>& varints, std::size_t before, std::size_t after)
      : memory(before + varints.size() + after, 0xff),
        around(memory),
        inside(around.subspan(before, varints.size())) {
    if (!varints.empty()) std::memcpy(memory.data() + before, varints.data(), varints.size());
  }
  std::vector<std::uint8_t> memory;
  WireBytes around;
  WireBytes inside;
};

std::vector<std::int64_t> decode(DecodeVarints kernel, const Placed& placed, std::size_t space,
                                 std::ptrdiff_t expected) {
  std::vector<std::int64_t> out(space + 1, 4711);
  CHECK(kernel(placed.inside, placed.around, out.data(), space) == expected);
  CHECK(out[space] == 4711);  // nothing is written past the space
  out.resize(expected < 0 ? 0 : static_cast<std::size_t>(expected));
  return out;
}

}  // namespace

TEST_CASE("every kernel decodes values of every length, anywhere in the record") {
  std::mt19937_64 random(1);
  for (const char* name : kKernels) {
    const DecodeVarints kernel = varint_kernel(name);
    if (kernel == nullptr) continue;
    CAPTURE(name);
    for (int round = 0; round < 4000; ++round) {
      const unsigned widest = 1 + static_cast<unsigned>(random() % 64);
      const std::size_t count = random() % 90;
      std::vector<std::int64_t> values;
      std::vector<std::uint8_t> bytes;
      for (std::size_t i = 0; i < count; ++i) {
        const unsigned bits =
            round % 3 == 0 ? widest : 1 + static_cast<unsigned>(random() % widest);
        values.push_back(static_cast<std::int64_t>(random() >> (64 - bits)));
        append_varint(bytes, static_cast<std::uint64_t>(values.back()));
      }
      const Placed placed(bytes, random() % 80, random() % 80);
      CHECK(count_varints(placed.inside) == count);
      CHECK(decode(kernel, placed, count, static_cast<std::ptrdiff_t>(count)) == values);
      if (count > 0) decode(kernel, placed, count - 1, kTooManyVarints);
    }
  }
}

TEST_CASE("every kernel refuses varints without an end, or of more than ten bytes") {
  for (const char* name : kKernels) {
    const DecodeVarints kernel = varint_kernel(name);
    if (kernel == nullptr) continue;
    CAPTURE(name);
    for (std::size_t before = 0; before < 150; ++before) {
      std::vector<std::uint8_t> bytes(before, 1);
      bytes.push_back(0x80);
      decode(kernel, Placed(bytes, 70, 70), before + 1, kBadVarints);
      decode(kernel, Placed(bytes, 0, 0), before + 1, kBadVarints);
      bytes.insert(bytes.end(), 9, 0x80);
      bytes.push_back(1);
      bytes.insert(bytes.end(), 70, 1);
      decode(kernel, Placed(bytes, 70, 70), bytes.size(), kBadVarints);
      decode(kernel, Placed(bytes, 0, 0), bytes.size(), kBadVarints);
    }
  }
}

TEST_CASE("every kernel reads values encoded longer than necessary, and drops bits past 64") {
  for (const char* name : kKernels) {
    const DecodeVarints kernel = varint_kernel(name);
    if (kernel == nullptr) continue;
    CAPTURE(name);
    for (std::size_t length = 1; length <= 10; ++length) {
      std::vector<std::uint8_t> bytes;
      for (int value = 0; value < 30; ++value) {
        bytes.insert(bytes.end(), length - 1, 0x80);
        bytes.push_back(0x7f);
      }
      const std::uint64_t wanted =
          length == 10 ? std::uint64_t{1} << 63 : std::uint64_t{0x7f} << (7 * (length - 1));
      const std::vector<std::int64_t> expected(30, static_cast<std::int64_t>(wanted));
      CHECK(decode(kernel, Placed(bytes, 64, 71), 30, 30) == expected);
      CHECK(decode(kernel, Placed(bytes, 0, 0), 30, 30) == expected);
    }
  }
}

TEST_CASE("a single varint is taken only if it fills its bytes") {
  for (std::size_t after = 0; after < 12; ++after) {
    for (unsigned bits = 0; bits <= 64; ++bits) {
      const std::uint64_t wanted = bits == 0 ? 0 : ~std::uint64_t{0} >> (64 - bits);
      std::vector<std::uint8_t> bytes;
      append_varint(bytes, wanted);
      std::int64_t value = 0;
      const Placed whole(bytes, 10, after);
      REQUIRE(decode_one_varint(whole.inside, whole.around, value));
      CHECK(static_cast<std::uint64_t>(value) == wanted);
      bytes.push_back(0);
      const Placed two(bytes, 10, after);
      CHECK_FALSE(decode_one_varint(two.inside, two.around, value));
      bytes.back() = 0x80;
      const Placed unfinished({0x80}, 10, after);
      CHECK_FALSE(decode_one_varint(unfinished.inside, unfinished.around, value));
    }
  }
  std::int64_t value = 0;
  CHECK_FALSE(decode_one_varint({}, {}, value));
}

TEST_CASE("BMI2 is left out where PEXT and PDEP are microcode") {
  constexpr std::string_view kAmd = "AuthenticAMD";
  const struct {
    const char* name;
    std::string_view vendor;
    std::uint32_t signature;
    bool fast;
  } processors[] = {
      {"Excavator", kAmd, 0x00660f01, false},
      {"Zen 1, Naples", kAmd, 0x00800f12, false},
      {"Zen+, Pinnacle Ridge", kAmd, 0x00800f82, false},
      {"Zen 1, Hygon Dhyana", "HygonGenuine", 0x00900f02, false},
      {"Zen 2, Rome", kAmd, 0x00830f10, false},
      {"Zen 2, Matisse", kAmd, 0x00870f10, false},
      {"Zen 2, Renoir", kAmd, 0x00860f01, false},
      {"Zen 3, Milan", kAmd, 0x00a00f11, true},
      {"Zen 3, Vermeer", kAmd, 0x00a20f10, true},
      {"Zen 4, Genoa", kAmd, 0x00a10f11, true},
      {"Zen 5, Turin", kAmd, 0x00b00f21, true},
      {"Haswell", "GenuineIntel", 0x000306c3, true},
      {"Skylake-SP", "GenuineIntel", 0x00050654, true},
      {"Sapphire Rapids", "GenuineIntel", 0x000806f8, true},
  };
  for (const auto& processor : processors) {
    CAPTURE(processor.name);
    CHECK(has_fast_bmi2(processor.vendor, processor.signature) == processor.fast);
  }
  if (std::strcmp(active_varint_kernel(), "bmi2") == 0) CHECK(cpu_has_fast_bmi2());
  if (const char* expected = std::getenv("TFRFAST_TEST_VARINT_KERNEL"); expected != nullptr) {
    CHECK(std::string(active_varint_kernel()) == std::string(expected));
  }
}
