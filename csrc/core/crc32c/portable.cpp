// Slicing by 16: for each of 16 bytes, a table of the byte's contribution to the register after the
// later bytes were appended. Sixteen independent look-ups replace a chain of sixteen.
#include <array>

#include "core/base/bytes.h"
#include "core/crc32c/kernels.h"
#include "core/crc32c/polynomial.h"

namespace tfrfast::crc32c_detail::portable {
namespace {

constexpr std::size_t kSlices = 16;
using Table = std::array<std::uint32_t, 256>;

// tables[d][b]: the register after byte b and d zero bytes, from a register of zero.
constexpr std::array<Table, kSlices> make_tables() noexcept {
  std::array<Table, kSlices> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = times_x(crc);
    tables[0][byte] = crc;
  }
  for (std::size_t distance = 1; distance < kSlices; ++distance) {
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t crc = tables[distance - 1][byte];
      tables[distance][byte] = (crc >> 8) ^ tables[0][crc & 0xff];
    }
  }
  return tables;
}
constexpr std::array<Table, kSlices> kTables = make_tables();

// The contribution of the eight bytes of `word` if kAfter bytes follow the word.
template <std::size_t kAfter>
inline std::uint32_t look_up(std::uint64_t word) noexcept {
  std::uint32_t crc = 0;
  for (std::size_t i = 0; i < 8; ++i) crc ^= kTables[kAfter + 7 - i][(word >> (8 * i)) & 0xff];
  return crc;
}

}  // namespace

bool supported() noexcept {
  return true;
}

std::uint32_t extend(const std::uint8_t* bytes, std::size_t count, std::uint32_t crc) noexcept {
  crc = ~crc;
  for (; count >= 16; count -= 16, bytes += 16) {
    crc = look_up<8>(load_little_endian<std::uint64_t>(bytes) ^ crc) ^
          look_up<0>(load_little_endian<std::uint64_t>(bytes + 8));
  }
  if (count >= 8) {
    crc = look_up<0>(load_little_endian<std::uint64_t>(bytes) ^ crc);
    bytes += 8;
    count -= 8;
  }
  for (; count != 0; --count) crc = (crc >> 8) ^ kTables[0][(crc ^ *bytes++) & 0xff];
  return ~crc;
}

std::uint32_t of_u64(std::uint64_t value) noexcept {
  return ~look_up<0>(value ^ 0xffffffffu);
}

}  // namespace tfrfast::crc32c_detail::portable
