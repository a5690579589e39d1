#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "core/shard/framing.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

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
