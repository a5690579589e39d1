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

// Height, width and channels.
inline constexpr std::size_t kShapeSize = 3;

// One thread.
class ImageRows {
 public:
  explicit ImageRows(const ImageSpec& spec) : decoder_(spec), channels_(spec.channels) {}

  // Drops the rows of the last batch. Throws OutOfMemory.
  void begin(std::size_t rows);

  // For the row that is put next.
  void set_draw(std::uint64_t draw) noexcept { draw_ = draw; }

  // Begins to decode `image`, and then writes its result_bytes() to `pixels`. False for an image
  // that cannot be decoded; problem() says why. Throws OutOfMemory.
  bool begin_row(std::size_t row, WireBytes image);
  bool finish_row(std::size_t row, WireBytes image, std::uint8_t* pixels);
  std::size_t result_bytes() const noexcept { return decoder_.result_bytes(); }

  const std::string& problem() const noexcept { return decoder_.problem(); }

  // The height, width and channels of the first rows, as int64. Throws OutOfMemory.
  PooledBuffer shapes(std::size_t rows) const;
  // An ImageCrop for each row. Call it once for each batch.
  PooledBuffer take_crops() noexcept { return std::move(crops_); }

 private:
  static constexpr std::size_t kNoRow = ~std::size_t{0};

  bool is_decoded(std::size_t row, WireBytes image) const noexcept {
    return row == last_row_ && image.data() == last_image_.data() &&
           image.size() == last_image_.size();
  }

  ImageDecoder decoder_;
  std::int64_t channels_;
  std::uint64_t draw_ = 0;
  PooledBuffer crops_;
  // The last image that was decoded, whose pixels are still in place. A record of an unusual form
  // is decoded twice, but not its image.
  std::size_t last_row_ = kNoRow;
  WireBytes last_image_;
};

}  // namespace tfrfast
