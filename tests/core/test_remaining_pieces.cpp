#include "core/storage/local/remaining_pieces.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace tfrfast {
namespace {

// Some text in memory, as pieces of these lengths.
struct Pieces {
  explicit Pieces(const std::vector<std::size_t>& lengths) {
    char* at = text.data();
    for (const std::size_t length : lengths) {
      vectors.push_back({at, length});
      at += length;
    }
  }
  RemainingPieces all() { return {vectors.data(), static_cast<int>(vectors.size())}; }

  std::string text = "abcdefghij";
  std::vector<iovec> vectors;
};

std::string text_of(const RemainingPieces& pieces) {
  std::string text;
  for (int i = 0; i < pieces.count(); ++i) {
    const iovec& piece = pieces.first()[i];
    text += std::string(static_cast<const char*>(piece.iov_base), piece.iov_len) + "|";
  }
  return text;
}

TEST_CASE("remaining pieces: an advance may end anywhere") {
  const char* const expected[] = {
      "abc|d|efghij|", "bc|d|efghij|", "c|d|efghij|", "d|efghij|", "efghij|", "fghij|",
      "ghij|",         "hij|",         "ij|",         "j|",        ""};
  for (std::size_t bytes = 0; bytes <= 10; ++bytes) {
    CAPTURE(bytes);
    Pieces pieces({3, 1, 6});
    RemainingPieces remaining = pieces.all();
    remaining.advance(bytes);
    CHECK(text_of(remaining) == expected[bytes]);
  }
}

TEST_CASE("remaining pieces: many short advances do everything once") {
  Pieces pieces({3, 1, 6});
  RemainingPieces remaining = pieces.all();
  std::string done;
  while (remaining.count() > 0) {
    done += *static_cast<const char*>(remaining.first()->iov_base);
    remaining.advance(1);
  }
  CHECK(done == "abcdefghij");
}

TEST_CASE("remaining pieces: empty ones are never the first") {
  Pieces pieces({0, 0, 4, 0, 0, 6, 0});
  RemainingPieces remaining = pieces.all();
  CHECK(text_of(remaining) == "abcd|||efghij||");
  remaining.advance(4);
  CHECK(text_of(remaining) == "efghij||");
  remaining.advance(6);
  CHECK(remaining.count() == 0);
}

TEST_CASE("remaining pieces: of nothing, nothing remains") {
  Pieces pieces({0, 0});
  CHECK(pieces.all().count() == 0);
  CHECK(Pieces({}).all().count() == 0);
}

}  // namespace
}  // namespace tfrfast
