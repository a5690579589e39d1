// Decodes any bytes as an image. A codec reads no byte outside the image. A decoder gives the same
// pixels each time, or the reason why it gives none, whatever image it decoded before.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
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

// Pixels, or the reason why there are none.
struct Outcome {
  std::vector<std::uint8_t> pixels;
  std::string problem;
  std::array<std::int32_t, 8> crop{};

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome decoded(ImageDecoder& decoder, const std::vector<std::uint8_t>& image, std::uint8_t draw) {
  Outcome outcome;
  if (decoder.begin(image, draw)) {
    outcome.pixels.resize(decoder.result_bytes());
    if (decoder.finish(outcome.pixels.data())) {
      const ImageCrop& crop = decoder.crop();
      require(crop.top >= 0 && crop.left >= 0 && crop.height >= 1 && crop.width >= 1);
      require(crop.top + crop.height <= crop.image_height);
      require(crop.left + crop.width <= crop.image_width);
      static_assert(sizeof outcome.crop == sizeof crop);
      std::memcpy(outcome.crop.data(), &crop, sizeof crop);
      return outcome;
    }
  }
  require(!decoder.problem().empty());
  return {{}, decoder.problem(), {}};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kHeader = 4;
  if (size < kHeader) return 0;
  const ImageSpec spec = spec_of(data[0]);
  const std::uint8_t draw = data[1];
  const std::size_t before_bytes =
      std::min<std::size_t>(size - kHeader, data[2] | std::size_t{data[3]} << 8);
  const std::uint8_t* const begin = data + kHeader + before_bytes;
  // Copies of the exact sizes, so that a sanitizer sees reads past the end.
  const std::vector<std::uint8_t> before(data + kHeader, begin), image(begin, data + size);
  ImageDecoder used(spec), fresh(spec);
  decoded(used, before, draw);
  const Outcome alone = decoded(fresh, image, draw);
  require(decoded(used, image, draw) == alone);
  require(decoded(used, image, draw) == alone);
  return 0;
}
