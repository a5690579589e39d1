// The rows of a column of images, which are decoded as they are put.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "core/base/pool.h"
#include "core/example/wire.h"
#include "core/image/image_decoder.h"

namespace tfrfast {

// One thread.
class ImageRows {
 public:
  explicit ImageRows(const ImageSpec& spec) : decoder_(spec), row_bytes_(spec.result_bytes()) {}

  // Drops the rows of the last batch. Throws OutOfMemory.
  void begin(std::size_t rows);

  // For the row that is put next.
  void set_draw(std::uint64_t draw) noexcept { draw_ = draw; }

  // Decodes `image` to its row of `pixels`. False for an image that cannot be decoded; problem()
  // says why. Throws OutOfMemory.
  bool put(std::size_t row, WireBytes image, std::uint8_t* pixels);

  const std::string& problem() const noexcept { return decoder_.problem(); }

  // An ImageCrop for each row. Call it once for each batch.
  PooledBuffer take_crops() noexcept { return std::move(crops_); }

 private:
  ImageDecoder decoder_;
  std::size_t row_bytes_;
  std::uint64_t draw_ = 0;
  PooledBuffer crops_;
  // The last image that was put. A record of an unusual form is decoded twice, but not its image.
  std::size_t last_row_ = ~std::size_t{0};
  WireBytes last_image_;
};

}  // namespace tfrfast
