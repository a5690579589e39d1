// Copies and compares pieces of memory: the rows of a ragged column, or byte strings.
//
// The pieces' places come from arrays that another thread may be writing. So each number is loaded
// once, checked, then used. Whatever the arrays hold, no memory outside the given spans is touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tfrfast {

// Piece i is the `sizes[i]` bytes of `bytes` from `starts[i]` on. Does not own the memory.
struct Pieces {
  std::span<const std::uint8_t> bytes;
  std::span<const std::int64_t> starts;
  std::span<const std::int64_t> sizes;

  std::size_t count() const noexcept { return starts.size(); }
};

// Every function below throws Error `invalid` if a piece is not within its bytes, or if the arrays
// differ in length.

// Returns the total size of all pieces.
std::size_t count_bytes(const Pieces& pieces);

// Copies the pieces end to end. Throws `invalid` if the pieces do not fill `out` exactly.
void join_pieces(const Pieces& pieces, std::span<std::uint8_t> out);

// Copies piece i to `out[places[i]]` and after. Throws `invalid` if the piece does not fit there.
// Leaves the other bytes of `out` as they are.
void place_pieces(const Pieces& pieces, std::span<const std::int64_t> places,
                  std::span<std::uint8_t> out);

// Sets equal[i] to whether piece i of `one` equals piece i of `other`.
void compare_pieces(const Pieces& one, const Pieces& other, std::span<bool> equal);

}  // namespace tfrfast
