// The orientation of a photo, from the EXIF data in its file.
#pragma once

#include <cstdint>
#include <span>

namespace tfrfast {

// From 1 to 8, or 1 if `data`, the contents of a JPEG's APP1 marker, states none.
int exif_orientation(std::span<const std::uint8_t> data) noexcept;

}  // namespace tfrfast
