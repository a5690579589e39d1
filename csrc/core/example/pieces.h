// Pieces of memory, copied and compared: what picking rows of ragged columns and of byte strings
// comes down to.
//
// Where pieces lie is said by arrays that another thread may be writing into. So each number is
// read once, checked, and what was read is used: whatever the arrays hold, nothing outside the
// given memory is touched.
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

// All of these throw Error `invalid` where a piece does not lie within its bytes, or where there
// are not as many of one array as of the others.

// The bytes of all pieces together.
std::size_t count_bytes(const Pieces& pieces);

// The pieces, one after the other; `invalid` if they do not fill `out` exactly.
void join_pieces(const Pieces& pieces, std::span<std::uint8_t> out);

// Piece i to where `out[places[i]]` is; `invalid` if it does not fit there. What lies between is
// left as it is.
void place_pieces(const Pieces& pieces, std::span<const std::int64_t> places,
                  std::span<std::uint8_t> out);

// Whether piece i of the one equals piece i of the other, for each i.
void compare_pieces(const Pieces& one, const Pieces& other, std::span<bool> equal);

}  // namespace tfrfast
