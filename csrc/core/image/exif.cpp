#include "core/image/exif.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace tfrfast {
namespace {

constexpr std::size_t kEntryBytes = 12;
constexpr std::uint16_t kOrientationTag = 0x0112;
constexpr std::uint16_t kShort = 3;

// Reads numbers of a TIFF in its byte order. Returns zero past the end.
class Tiff {
 public:
  // `bytes` are not empty.
  explicit Tiff(std::span<const std::uint8_t> bytes) noexcept
      : bytes_(bytes), is_big_endian_(bytes[0] == 'M') {}
  std::uint16_t short_at(std::size_t offset) const noexcept {
    return static_cast<std::uint16_t>(number(offset, 2));
  }
  std::uint32_t long_at(std::size_t offset) const noexcept { return number(offset, 4); }
  std::size_t size() const noexcept { return bytes_.size(); }

 private:
  std::uint32_t number(std::size_t offset, std::size_t count) const noexcept {
    if (offset > bytes_.size() || count > bytes_.size() - offset) return 0;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t byte = is_big_endian_ ? i : count - 1 - i;
      value = value << 8 | bytes_[offset + byte];
    }
    return value;
  }

  std::span<const std::uint8_t> bytes_;
  bool is_big_endian_;
};

bool begins_with(std::span<const std::uint8_t> data, std::string_view start) noexcept {
  return data.size() >= start.size() && std::equal(start.begin(), start.end(), data.begin());
}

}  // namespace

std::optional<int> exif_orientation(std::span<const std::uint8_t> data) noexcept {
  // Begins the data of a JPEG, and of a PNG by some writers.
  if (begins_with(data, {"Exif\0", 6})) data = data.subspan(6);
  if (!begins_with(data, {"II*\0", 4}) && !begins_with(data, {"MM\0*", 4})) return std::nullopt;
  const Tiff tiff(data);
  const std::size_t directory = tiff.long_at(4);
  if (directory >= tiff.size()) return 1;
  const std::size_t entries =
      std::min<std::size_t>(tiff.short_at(directory), (tiff.size() - directory) / kEntryBytes);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + i * kEntryBytes;
    if (tiff.short_at(entry) != kOrientationTag || tiff.short_at(entry + 2) != kShort) continue;
    const int orientation = tiff.short_at(entry + 8);
    return orientation >= 1 && orientation <= 8 ? orientation : 1;
  }
  return 1;
}

}  // namespace tfrfast
