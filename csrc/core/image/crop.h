// Chooses the window of an image. docs/images.md specifies random windows bit by bit.
#pragma once

#include <cstdint>

#include "core/image/image_spec.h"

namespace tfrfast {

// A window in pixels of the image, upright if the spec turns it. Lies within the image, and has at
// least one pixel.
struct Crop {
  std::uint32_t top = 0;
  std::uint32_t left = 0;
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  bool flipped = false;  // mirrored, left to right

  friend bool operator==(const Crop&, const Crop&) = default;
};

// The draw of a row. `row` is the place in the position, 0 unless positions are batches.
std::uint64_t image_draw(std::uint64_t seed, std::uint64_t epoch, std::uint64_t position,
                         std::uint64_t row) noexcept;

// The draw of a picture of a row, if each picture has draws of its own.
std::uint64_t frame_draw(std::uint64_t draw, std::uint64_t frame) noexcept;

// Returns the window of an image that has at least one pixel. Random windows and mirrors follow
// from `draw`.
Crop choose_crop(const ImageSpec& spec, std::uint32_t image_height, std::uint32_t image_width,
                 std::uint64_t draw) noexcept;

}  // namespace tfrfast
