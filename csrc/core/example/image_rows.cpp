#include "core/example/image_rows.h"

#include <algorithm>

namespace tfrfast {

void ImageRows::begin(std::size_t rows) {
  crops_ = PooledBuffer(std::max<std::size_t>(rows, 1) * sizeof(ImageCrop));
  last_row_ = kNoRow;
  draw_ = 0;
}

bool ImageRows::begin_row(std::size_t row, WireBytes image) {
  if (is_decoded(row, image)) return true;
  last_row_ = kNoRow;
  return decoder_.begin(image, draw_);
}

bool ImageRows::finish_row(std::size_t row, WireBytes image, std::uint8_t* pixels) {
  if (is_decoded(row, image)) return true;
  if (!decoder_.finish(pixels)) return false;
  crops_.as<ImageCrop>()[row] = decoder_.crop();
  last_row_ = row;
  last_image_ = image;
  return true;
}

PooledBuffer ImageRows::shapes(std::size_t rows) const {
  PooledBuffer shapes(std::max<std::size_t>(rows, 1) * kShapeSize * sizeof(std::int64_t));
  auto* out = shapes.as<std::int64_t>();
  for (std::size_t row = 0; row < rows; ++row) {
    const ImageCrop& crop = crops_.as<ImageCrop>()[row];
    *out++ = crop.height;
    *out++ = crop.width;
    *out++ = channels_;
  }
  return shapes;
}

}  // namespace tfrfast
