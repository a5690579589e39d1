// Resizes decoded pixels to a given size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/pool.h"
#include "core/image/image_codec.h"
#include "core/image/image_spec.h"
#include "core/image/resize_kernels.h"

namespace tfrfast {

// Turns a stored image upright.
struct Turn {
  bool swaps_axes = false;       // first; then
  bool mirrors_rows = false;     // the last row becomes the first
  bool mirrors_columns = false;  // the last column becomes the first
};
Turn turn_of(int exif_orientation) noexcept;

// Resizes images one by one. One thread.
class Resizer {
 public:
  explicit Resizer(const ResizeKernel& kernel = best_resize_kernel()) noexcept : kernel_(&kernel) {}

  // Writes spec.result_bytes() to `out`: the window of `pixels`, resized, turned and, if `flipped`,
  // mirrored. Throws OutOfMemory.
  void resize(const Pixels& pixels, const ImageSpec& spec, const Turn& turn, bool flipped,
              std::uint8_t* out);

 private:
  void blend_row(const Pixels& pixels, std::size_t row);

  const ResizeKernel* kernel_;
  ResizeAxis rows_, columns_;
  std::uint32_t first_column_ = 0;  // of the pixels that are blended
  std::uint32_t column_count_ = 0;
  PooledBuffer blended_;        // a row, int16
  PooledBuffer sums_;           // a row, int32
  PooledBuffer bytes_;          // a row of bytes, and one more
  std::vector<double> joined_;  // a row whose pixels have several parts
  std::vector<const std::uint8_t*> taps_;
};

}  // namespace tfrfast
