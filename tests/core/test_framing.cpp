#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/shard/framing.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

const std::uint8_t* bytes_of(const std::string& text) {
  return reinterpret_cast<const std::uint8_t*>(text.data());
}

struct Walk {
  WalkStep step;
  std::vector<std::uint64_t> offsets;
};

Walk walk_whole(const std::string& shard) {
  Walk walk;
  walk.offsets.resize(100);
  // On the heap with the exact size, so that the address sanitizer sees the end.
  const std::vector<std::uint8_t> bytes(shard.begin(), shard.end());
  walk.step =
      walk_frames({bytes.data(), 0, bytes.size(), bytes.size()}, 0, walk.offsets.data(), 100);
  walk.offsets.resize(walk.step.frames);
  return walk;
}

std::string header_of(std::uint64_t payload_bytes) {
  std::string header(kHeaderBytes, '\0');
  encode_header(payload_bytes, reinterpret_cast<std::uint8_t*>(header.data()));
  return header;
}

}  // namespace

TEST_CASE("framing: a header survives encode and decode") {
  for (const std::uint64_t length : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{258},
                                     std::uint64_t{1} << 32, ~std::uint64_t{0}}) {
    const std::string bytes = header_of(length);
    const FrameHeader header = decode_header(bytes_of(bytes));
    CHECK(header.payload_bytes == length);
    CHECK(header_is_intact(header));
  }
}

TEST_CASE("framing: the bytes are TFRecord's") {
  // As TensorFlow writes the record b"abc".
  const std::string expected(
      "\x03\0\0\0\0\0\0\0\xb0\x99\x49\x0e"
      "abc"
      "nW\xf1!",
      19);
  CHECK(frame_of("abc") == expected);
}

TEST_CASE("framing: any flipped bit of a header breaks it") {
  for (const std::uint64_t length :
       {std::uint64_t{0}, std::uint64_t{376}, std::uint64_t{1} << 40}) {
    for (unsigned bit = 0; bit < 8 * kHeaderBytes; ++bit) {
      std::string bytes = header_of(length);
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
      CAPTURE(bit);
      CHECK_FALSE(header_is_intact(decode_header(bytes_of(bytes))));
    }
  }
}

TEST_CASE("framing: a length that would overflow is a torn payload") {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t length : {kMax, kMax - 3, kMax - 15, kMax - 16, kMax / 2}) {
    CAPTURE(length);
    const Walk walk = walk_whole(frame_of("good") + header_of(length) + payload(40));
    CHECK(walk.step.stop == WalkStop::torn_payload);
    CHECK(walk.step.frames == 1);
    CHECK(walk.step.next == 20);
  }
}

TEST_CASE("framing: every window gives the same walk, and no byte outside it is read") {
  const std::string shard = frame_of("a") + frame_of(payload(100)) + frame_of("") + frame_of("xyz");
  const Walk whole = walk_whole(shard);
  for (std::size_t begin = 0; begin <= shard.size(); ++begin) {
    for (std::size_t end = begin; end <= shard.size(); ++end) {
      const std::vector<std::uint8_t> bytes(shard.begin() + begin, shard.begin() + end);
      const ShardWindow window{bytes.data(), begin, end, shard.size()};
      for (const std::uint64_t start : whole.offsets) {
        std::uint64_t offsets[10];
        const WalkStep step = walk_frames(window, start, offsets, 10);
        CAPTURE(begin);
        CAPTURE(end);
        CAPTURE(start);
        const bool left = step.next < shard.size() && (step.next < begin || end < kHeaderBytes ||
                                                       step.next > end - kHeaderBytes);
        REQUIRE(step.stop == (left ? WalkStop::leaves_window : WalkStop::clean_end));
        for (std::size_t i = 0; i < step.frames; ++i) {
          REQUIRE(std::count(whole.offsets.begin(), whole.offsets.end(), offsets[i]) == 1);
        }
      }
    }
  }
}
