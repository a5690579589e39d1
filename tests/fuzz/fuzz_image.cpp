// Decodes any bytes as an image. A codec reads no byte outside the image. A decoder gives the same
// pixels each time, or the reason why it gives none.
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
  const bool keeps_sizes = (choices & 128) != 0;
  spec.height = keeps_sizes ? 0 : 5;
  spec.width = keeps_sizes ? 0 : 9;
  spec.channels = (choices & 1) != 0 ? 1 : 3;
  spec.crop = (choices & 2) != 0 ? CropKind::random
              : keeps_sizes      ? CropKind::whole
                                 : CropKind::center;
  spec.min_area = kFixedOne / 100;
  spec.resize = (choices & 4) != 0 ? ResizeKind::area : ResizeKind::bilinear;
  spec.is_float = (choices & 8) != 0;
  spec.channels_first = (choices & 16) != 0 && !keeps_sizes;
  spec.turns_upright = (choices & 32) != 0;
  spec.flips = (choices & 64) != 0;
  spec.max_pixels = 1 << 16;
  return spec;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const ImageSpec spec = spec_of(data[0]);
  // A copy of the exact size, so that a sanitizer sees reads past the end.
  const std::vector<std::uint8_t> image(data + 2, data + size);
  ImageDecoder decoder(spec);
  if (!decoder.begin(image, data[1])) {
    require(!decoder.problem().empty());
    return 0;
  }
  std::vector<std::uint8_t> first(decoder.result_bytes()), second(decoder.result_bytes());
  if (!decoder.finish(first.data())) {
    require(!decoder.problem().empty());
    return 0;
  }
  const ImageCrop crop = decoder.crop();
  require(crop.top >= 0 && crop.left >= 0 && crop.height >= 1 && crop.width >= 1);
  require(crop.top + crop.height <= crop.image_height);
  require(crop.left + crop.width <= crop.image_width);
  require(decoder.begin(image, data[1]) && decoder.finish(second.data()));
  require(first == second);
  return 0;
}
