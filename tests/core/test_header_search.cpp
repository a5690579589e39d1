#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "core/shard/header_search.h"

using namespace tfrfast;

namespace {

using Bytes = std::vector<std::uint8_t>;

// Tries one place after the other.
HeaderSearch search_simply(const ShardWindow& window, std::uint64_t from) {
  std::uint64_t at = from;
  for (; at < window.end && window.end - at >= kHeaderBytes; ++at) {
    const FrameHeader header = decode_header(window.bytes + (at - window.begin));
    const std::uint64_t left = window.shard_bytes - at;
    if (left < kFrameOverhead || header.payload_bytes > left - kFrameOverhead) continue;
    if (header_is_intact(header)) return {true, at, header.payload_bytes};
  }
  return {false, at, 0};
}

// Checks that the search finds all headers in `bytes`, which begin at byte `begin` of a shard of
// `shard_bytes` bytes.
void check(const Bytes& bytes, std::uint64_t begin, std::uint64_t shard_bytes) {
  // A copy of the exact size on the heap, so that a sanitizer notices reads past the end.
  const auto copy = std::make_unique<std::uint8_t[]>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), copy.get());
  const ShardWindow window{copy.get(), begin, begin + bytes.size(), shard_bytes};
  for (std::uint64_t from = begin;;) {
    const HeaderSearch expected = search_simply(window, from);
    const HeaderSearch found = search_header(window, from);
    CAPTURE(from);
    REQUIRE(found.found == expected.found);
    REQUIRE(found.at == expected.at);
    REQUIRE(found.payload_bytes == expected.payload_bytes);
    if (!found.found) break;
    from = found.at + 1;
  }
}

void put_header(Bytes& bytes, std::size_t at, std::uint64_t payload_bytes) {
  if (at + kHeaderBytes <= bytes.size()) encode_header(payload_bytes, bytes.data() + at);
}

const std::uint64_t kShardSizes[] = {
    16, 100, 300, 70'000, 1 << 24, 5'000'000'000, 1ull << 40, 1ull << 55, 1ull << 60, ~0ull >> 1};

}  // namespace

TEST_CASE("header search: what one place after the other finds, in bytes of every kind") {
  std::mt19937_64 random(1);
  const auto fill = [&](Bytes& bytes, int kind) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const auto any = static_cast<std::uint8_t>(random());
      switch (kind) {
        case 0:  // zeros
          bytes[i] = 0;
          break;
        case 1:
          bytes[i] = any;
          break;
        case 2:  // runs of zeros, of all lengths
          bytes[i] = random() % 12 == 0 ? any : 0;
          break;
        case 3:  // small integers of eight bytes
          bytes[i] = i % 8 == 0 ? any : 0;
          break;
        default:  // small integers of two bytes
          bytes[i] = i % 2 == 0 ? any : 0;
      }
    }
  };
  for (int round = 0; round < 3000; ++round) {
    Bytes bytes(random() % 300);
    fill(bytes, round % 5);
    for (std::uint64_t headers = random() % 6; headers > 0 && !bytes.empty(); --headers) {
      put_header(bytes, random() % bytes.size(), random() % 3 == 0 ? 0 : random() >> random() % 64);
    }
    for (const std::uint64_t shard_bytes : kShardSizes) {
      if (shard_bytes < bytes.size()) continue;
      check(bytes, 0, shard_bytes);
      check(bytes, shard_bytes - bytes.size(), shard_bytes);  // at the shard's end
    }
  }
}

TEST_CASE("header search: an empty record among zeros is found, however many they are") {
  for (std::size_t zeros = 0; zeros < 200; ++zeros) {
    for (const std::size_t more : {0, 1, 4, 5, 100}) {
      Bytes bytes(zeros + kFrameOverhead + more);
      put_header(bytes, zeros, 0);
      check(bytes, 0, bytes.size());
      check(bytes, 1000, 5'000'000'000);
      const HeaderSearch found = search_header({bytes.data(), 0, bytes.size(), bytes.size()}, 0);
      CHECK(found.found);
      CHECK(found.at == zeros);
    }
  }
}
