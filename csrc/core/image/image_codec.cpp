#include "core/image/image_codec.h"

#include <algorithm>
#include <iterator>

namespace tfrfast {
namespace {

constexpr std::uint8_t kJpegStart[] = {0xff, 0xd8, 0xff};
constexpr std::uint8_t kPngStart[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

template <std::size_t Count>
bool starts_with(EncodedImage image, const std::uint8_t (&start)[Count]) noexcept {
  return image.size() >= Count && std::equal(std::begin(start), std::end(start), image.begin());
}

}  // namespace

bool has_image_codecs() {
  return make_jpeg_codec() != nullptr && make_png_codec() != nullptr;
}

bool looks_like_jpeg(EncodedImage image) noexcept {
  return starts_with(image, kJpegStart);
}

bool looks_like_png(EncodedImage image) noexcept {
  return starts_with(image, kPngStart);
}

void make_grey(std::uint8_t* pixels, std::size_t count) noexcept {
  const std::uint8_t* pixel = pixels;
  for (std::size_t i = 0; i < count; ++i, pixel += kColorChannels) {
    const int luma = (19595 * pixel[0] + 38470 * pixel[1] + 7471 * pixel[2] + 32768) >> 16;
    pixels[i] = static_cast<std::uint8_t>(luma);
  }
}

}  // namespace tfrfast
