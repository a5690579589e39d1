#include "core/example/image_rows.h"

#include <algorithm>

namespace tfrfast {

void ImageRows::begin(std::size_t rows) {
  crops_ = PooledBuffer(std::max<std::size_t>(rows, 1) * sizeof(ImageCrop));
  last_row_ = ~std::size_t{0};
  draw_ = 0;
}

bool ImageRows::put(std::size_t row, WireBytes image, std::uint8_t* pixels) {
  if (row == last_row_ && image.data() == last_image_.data() &&
      image.size() == last_image_.size()) {
    return true;
  }
  last_row_ = ~std::size_t{0};
  ImageCrop crop;
  if (!decoder_.decode(image, draw_, pixels + row * row_bytes_, crop)) return false;
  crops_.as<ImageCrop>()[row] = crop;
  last_row_ = row;
  last_image_ = image;
  return true;
}

}  // namespace tfrfast
