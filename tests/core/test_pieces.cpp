#include <doctest/doctest.h>

#include <array>
#include <limits>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/example/pieces.h"

using namespace tfrfast;

namespace {

constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

struct Source {
  std::string bytes = "onethree";
  std::vector<std::int64_t> starts = {3, 0, 8, 0};
  std::vector<std::int64_t> sizes = {5, 3, 0, 8};

  Pieces pieces() const {
    return {{reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, starts, sizes};
  }
};

std::string text_of(const std::vector<std::uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

}  // namespace

TEST_CASE("pieces: a place that they do not fill, or do not fit in") {
  const Source source;
  for (const std::size_t space : {0, 15, 17}) {
    std::vector<std::uint8_t> out(space);
    CHECK_THROWS_AS(join_pieces(source.pieces(), out), Error);
  }
}

TEST_CASE("pieces: to places, and bytes between them stay as they are") {
  const Source source;
  std::vector<std::uint8_t> out(20, '.');
  place_pieces(source.pieces(), std::vector<std::int64_t>{1, 7, 20, 11}, out);
  CHECK(text_of(out) == ".three.one.onethree.");
  for (const std::int64_t outside :
       {std::int64_t{13}, std::int64_t{21}, std::int64_t{-1}, kMin, kMax}) {
    CHECK_THROWS_AS(
        place_pieces(source.pieces(), std::vector<std::int64_t>{1, 7, 20, outside}, out), Error);
  }
}

TEST_CASE("pieces: outside their bytes they are refused, whatever the numbers") {
  for (const auto& [start, size] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{-1, 1},
                                                          {0, -1},
                                                          {9, 0},
                                                          {8, 1},
                                                          {0, 9},
                                                          {kMax, 1},
                                                          {1, kMax},
                                                          {kMin, 0},
                                                          {0, kMin},
                                                          {kMax, kMax},
                                                          {kMin, kMin}}) {
    Source source;
    source.starts[2] = start;
    source.sizes[2] = size;
    std::vector<std::uint8_t> out(64);
    std::array<bool, 4> equal;
    CHECK_THROWS_AS(count_bytes(source.pieces()), Error);
    CHECK_THROWS_AS(join_pieces(source.pieces(), out), Error);
    CHECK_THROWS_AS(place_pieces(source.pieces(), std::vector<std::int64_t>(4, 0), out), Error);
    CHECK_THROWS_AS(compare_pieces(Source().pieces(), source.pieces(), equal), Error);
  }
}

TEST_CASE("pieces: as many of one array as of the others") {
  const Source source;
  Source other;
  other.sizes.pop_back();
  std::vector<std::uint8_t> out(64);
  std::array<bool, 4> equal;
  CHECK_THROWS_AS(count_bytes(other.pieces()), Error);
  CHECK_THROWS_AS(join_pieces(other.pieces(), out), Error);
  CHECK_THROWS_AS(place_pieces(source.pieces(), std::vector<std::int64_t>(3, 0), out), Error);
  CHECK_THROWS_AS(compare_pieces(source.pieces(), other.pieces(), equal), Error);
  CHECK_THROWS_AS(compare_pieces(source.pieces(), source.pieces(), std::span(equal).first(3)),
                  Error);
}
