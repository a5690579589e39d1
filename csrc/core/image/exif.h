// The orientation of a photo, from the EXIF data in its file.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace tfrfast {

// `data` holds a JPEG's APP1 marker or a PNG's eXIf chunk. Returns 1 to 8, 1 if the EXIF data
// states no orientation, and nothing if it is no EXIF data.
std::optional<int> exif_orientation(std::span<const std::uint8_t> data) noexcept;

}  // namespace tfrfast
