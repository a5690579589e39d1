#include "core/example/pieces.h"

#include <cstring>
#include <string>

#include "core/base/error.h"

namespace tfrfast {
namespace {

// A single load: another thread may be writing the number.
std::uint64_t load_once(const std::int64_t& number) noexcept {
  return static_cast<std::uint64_t>(__atomic_load_n(&number, __ATOMIC_RELAXED));
}

void check_counts(std::size_t expected, std::size_t found) {
  if (found == expected) return;
  throw Error(ErrorKind::invalid, "There are " + std::to_string(expected) + " pieces, but " +
                                      std::to_string(found) + " places for them.");
}

[[noreturn]] void throw_outside(std::size_t number, std::uint64_t start, std::uint64_t size,
                                std::size_t bytes) {
  throw Error(ErrorKind::invalid,
              "The offsets or row splits do not lie within their values: piece " +
                  std::to_string(number) + " begins at byte " +
                  std::to_string(static_cast<std::int64_t>(start)) + " and has " +
                  std::to_string(static_cast<std::int64_t>(size)) + " bytes, but there are " +
                  std::to_string(bytes) + " bytes in all.");
}

std::span<const std::uint8_t> piece_of(const Pieces& pieces, std::size_t number) {
  const std::uint64_t start = load_once(pieces.starts[number]);
  const std::uint64_t size = load_once(pieces.sizes[number]);
  // Converted to unsigned, a negative number is too large.
  if (start > pieces.bytes.size() || size > pieces.bytes.size() - start) {
    throw_outside(number, start, size, pieces.bytes.size());
  }
  return pieces.bytes.subspan(start, size);
}

void copy(std::span<const std::uint8_t> piece, std::uint8_t* out) noexcept {
  if (!piece.empty()) std::memcpy(out, piece.data(), piece.size());
}

}  // namespace

std::size_t count_bytes(const Pieces& pieces) {
  check_counts(pieces.count(), pieces.sizes.size());
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < pieces.count(); ++i) {
    if (__builtin_add_overflow(bytes, piece_of(pieces, i).size(), &bytes)) {
      throw Error(ErrorKind::invalid, "The pieces together are more than memory can hold.");
    }
  }
  return bytes;
}

void join_pieces(const Pieces& pieces, std::span<std::uint8_t> out) {
  check_counts(pieces.count(), pieces.sizes.size());
  std::size_t used = 0;
  bool fits = true;
  for (std::size_t i = 0; fits && i < pieces.count(); ++i) {
    const std::span<const std::uint8_t> piece = piece_of(pieces, i);
    fits = piece.size() <= out.size() - used;
    if (!fits) break;
    copy(piece, out.data() + used);
    used += piece.size();
  }
  if (!fits || used != out.size()) {
    throw Error(ErrorKind::invalid,
                "Another thread changed the offsets or row splits while rows were taken.");
  }
}

void place_pieces(const Pieces& pieces, std::span<const std::int64_t> places,
                  std::span<std::uint8_t> out) {
  check_counts(pieces.count(), pieces.sizes.size());
  check_counts(pieces.count(), places.size());
  for (std::size_t i = 0; i < pieces.count(); ++i) {
    const std::span<const std::uint8_t> piece = piece_of(pieces, i);
    const std::uint64_t place = load_once(places[i]);
    if (place > out.size() || piece.size() > out.size() - place) {
      throw_outside(i, place, piece.size(), out.size());
    }
    copy(piece, out.data() + place);
  }
}

void compare_pieces(const Pieces& one, const Pieces& other, std::span<bool> equal) {
  check_counts(one.count(), one.sizes.size());
  check_counts(one.count(), other.count());
  check_counts(one.count(), other.sizes.size());
  check_counts(one.count(), equal.size());
  for (std::size_t i = 0; i < one.count(); ++i) {
    const std::span<const std::uint8_t> a = piece_of(one, i);
    const std::span<const std::uint8_t> b = piece_of(other, i);
    equal[i] =
        a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
  }
}

}  // namespace tfrfast
