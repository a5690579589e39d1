// Any bytes as an image: a codec reads nothing outside them, and a decoder gives the same pixels
// again, or says why it gives none.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/image/image_decoder.h"
#include "may_throw.h"

using namespace tfrfast;

namespace {

ImageSpec spec_of(std::uint8_t choices) {
  ImageSpec spec;
  spec.height = 5;
  spec.width = 9;
  spec.channels = (choices & 1) != 0 ? 1 : 3;
  spec.crop = (choices & 2) != 0 ? CropKind::random : CropKind::center;
  spec.min_area = kFixedOne / 100;
  spec.resize = (choices & 4) != 0 ? ResizeKind::area : ResizeKind::bilinear;
  spec.is_float = (choices & 8) != 0;
  spec.channels_first = (choices & 16) != 0;
  spec.turns_upright = (choices & 32) != 0;
  spec.flips = (choices & 64) != 0;
  spec.max_pixels = 1 << 16;
  return spec;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const ImageSpec spec = spec_of(data[0]);
  // A copy of its own size, so that a sanitizer sees what is read past the end.
  const std::vector<std::uint8_t> image(data + 2, data + size);
  ImageDecoder decoder(spec);
  std::vector<std::uint8_t> first(spec.result_bytes()), second(spec.result_bytes());
  ImageCrop crop, again;
  if (!decoder.decode(image, data[1], first.data(), crop)) {
    require(!decoder.problem().empty());
    return 0;
  }
  require(crop.top >= 0 && crop.left >= 0 && crop.height >= 1 && crop.width >= 1);
  require(crop.top + crop.height <= crop.image_height);
  require(crop.left + crop.width <= crop.image_width);
  require(decoder.decode(image, data[1], second.data(), again));
  require(first == second);
  return 0;
}
