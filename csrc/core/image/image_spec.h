// Describes how an encoded image becomes pixels: the window, the size and the form of the result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tfrfast {

enum class CropKind : std::uint8_t {
  whole,   // the whole image, whatever its shape
  center,  // the largest window in the middle with the shape of the result
  random,  // a window drawn for each row
};
enum class ResizeKind : std::uint8_t {
  area,      // the mean of the covered pixels
  bilinear,  // a triangle filter, twice as wide as a result pixel when shrinking
};
CropKind crop_named(std::string_view name);  // "none", "center", "random"; throws Error(invalid)
ResizeKind resize_named(std::string_view name);  // "area", "bilinear"; throws Error(invalid)

// Units of 2^-32. Windows are drawn in integers, so every machine draws the same windows.
using Fixed32 = std::uint64_t;
inline constexpr Fixed32 kFixedOne = Fixed32{1} << 32;

struct ImageSpec {
  // Of the result. With 0 by 0, each result has the size of its window.
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  std::uint32_t channels = 3;  // 1 or 3
  // Pictures of a row, one for each step of a window; 0 for a single picture without a window.
  std::uint32_t frames = 0;
  bool draws_each = false;  // each picture of a row has draws of its own
  CropKind crop = CropKind::whole;
  // Bounds of a random window: its share of the image's area, and width divided by height.
  Fixed32 min_area = kFixedOne, max_area = kFixedOne;
  Fixed32 min_ratio = kFixedOne, max_ratio = kFixedOne;
  bool flips = false;  // half of the images are mirrored, left to right
  ResizeKind resize = ResizeKind::bilinear;
  bool is_float = false;        // float32 from 0 to 255, not rounded; else uint8
  bool channels_first = false;  // channel, row, column; else row, column, channel
  bool turns_upright = false;   // by the EXIF orientation
  bool grey_if_damaged = false;
  std::uint64_t max_pixels = std::uint64_t{1} << 26;  // larger images are an error

  bool keeps_sizes() const noexcept { return height == 0 && width == 0; }
  bool is_random() const noexcept { return crop == CropKind::random || flips; }
  std::size_t pictures() const noexcept { return frames == 0 ? 1 : frames; }
  std::size_t value_bytes() const noexcept { return is_float ? sizeof(float) : 1; }
  std::size_t result_bytes() const noexcept {
    return std::size_t{height} * width * channels * value_bytes();
  }
};

// Throws Error(invalid) for a spec that makes no sense.
void check(const ImageSpec& spec);

}  // namespace tfrfast
