// Which window of an image is taken. docs/images.md specifies the random one bit by bit.
#pragma once

#include <cstdint>

#include "core/image/image_spec.h"

namespace tfrfast {

// In pixels of the image, turned upright if the spec asks for it. `height` and `width` are at least
// 1, and the window lies within the image.
struct Crop {
  std::uint32_t top = 0;
  std::uint32_t left = 0;
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  bool flipped = false;  // mirrored, left to right

  friend bool operator==(const Crop&, const Crop&) = default;
};

// What is drawn for a row. Rows of different seeds, epochs, positions, or places in a position that
// is a whole batch, have draws of their own.
std::uint64_t image_draw(std::uint64_t seed, std::uint64_t epoch, std::uint64_t position,
                         std::uint64_t row) noexcept;

// The window of an image of that size, at least one pixel. `draw` is for windows and mirrors that
// are random.
Crop choose_crop(const ImageSpec& spec, std::uint32_t image_height, std::uint32_t image_width,
                 std::uint64_t draw) noexcept;

}  // namespace tfrfast
