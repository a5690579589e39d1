// Copies and compares pieces of memory, which is how rows of ragged columns and of byte strings are
// picked.
//
// The pieces' places come from arrays that another thread may be writing into. So each number is
// read once, checked and used. Whatever the arrays hold, nothing outside the given memory is
// touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tfrfast {

// Piece i is the `sizes[i]` bytes of `bytes` from `starts[i]` on. Owns nothing.
struct Pieces {
  std::span<const std::uint8_t> bytes;
  std::span<const std::int64_t> starts;
  std::span<const std::int64_t> sizes;

  std::size_t count() const noexcept { return starts.size(); }
};

// All of these throw Error `invalid` if a piece is not within its bytes, or if the arrays differ in
// length.

// The bytes of all pieces together.
std::size_t count_bytes(const Pieces& pieces);

// Copies the pieces, one after the other. Throws `invalid` if they do not fill `out` exactly.
void join_pieces(const Pieces& pieces, std::span<std::uint8_t> out);

// Copies piece i to `out[places[i]]` and after. Throws `invalid` if it does not fit there. Bytes of
// `out` between pieces stay as they are.
void place_pieces(const Pieces& pieces, std::span<const std::int64_t> places,
                  std::span<std::uint8_t> out);

// For each i, whether piece i of the one equals piece i of the other.
void compare_pieces(const Pieces& one, const Pieces& other, std::span<bool> equal);

}  // namespace tfrfast
