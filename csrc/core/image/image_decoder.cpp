#include "core/image/image_decoder.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/error.h"

namespace tfrfast {
namespace {

constexpr std::uint8_t kGrey = 128;

const char* const kNoCodecs =
    "This build of tfrfast decodes no images, as libjpeg-turbo or libpng was missing when it was "
    "built. Install them (`apt-get install libjpeg62-turbo-dev libpng-dev`, `dnf install "
    "libjpeg-turbo-devel libpng-devel` or `brew install jpeg-turbo libpng`) and build tfrfast "
    "again, or install a wheel.";

// The window in the stored image that is `crop` in the upright one.
StoredWindow stored_window(const Crop& crop, const ImageHeader& stored, const Turn& turn) noexcept {
  StoredWindow window{crop.top, crop.left, crop.height, crop.width};
  const std::uint32_t height = turn.swaps_axes ? stored.width : stored.height;
  const std::uint32_t width = turn.swaps_axes ? stored.height : stored.width;
  if (turn.mirrors_rows) window.top = height - crop.top - crop.height;
  if (turn.mirrors_columns) window.left = width - crop.left - crop.width;
  if (turn.swaps_axes) {
    std::swap(window.top, window.left);
    std::swap(window.height, window.width);
  }
  return window;
}

}  // namespace

ImageDecoder::ImageDecoder(const ImageSpec& spec)
    : spec_(spec), jpeg_(make_jpeg_codec()), png_(make_png_codec()) {
  if (jpeg_ == nullptr || png_ == nullptr) throw Error(ErrorKind::invalid, kNoCodecs);
}

bool ImageDecoder::decode(EncodedImage image, std::uint64_t draw, std::uint8_t* out,
                          ImageCrop& crop) {
  crop = {};
  if (decode_whole(image, draw, out, crop)) return true;
  if (!spec_.grey_if_damaged) return false;
  crop = {};
  crop.damaged = 1;
  write_grey(out);
  return true;
}

bool ImageDecoder::decode_whole(EncodedImage image, std::uint64_t draw, std::uint8_t* out,
                                ImageCrop& crop) {
  ImageCodec* codec = nullptr;
  if (looks_like_jpeg(image)) {
    codec = jpeg_.get();
  } else if (looks_like_png(image)) {
    codec = png_.get();
  } else {
    problem_ = image.empty() ? "the string is empty" : "it is neither a JPEG nor a PNG";
    return false;
  }
  ImageHeader header;
  if (!codec->read_header(image, header)) {
    problem_ = codec->problem();
    return false;
  }
  if (std::uint64_t{header.height} * header.width > spec_.max_pixels) {
    problem_ = "it has " + std::to_string(header.height) + " x " + std::to_string(header.width) +
               " pixels, and max_pixels is " + std::to_string(spec_.max_pixels);
    return false;
  }
  const Turn turn = spec_.turns_upright ? turn_of(header.orientation) : Turn();
  std::uint32_t height = header.height, width = header.width;
  if (turn.swaps_axes) std::swap(height, width);
  const Crop chosen = choose_crop(spec_, height, width, draw);
  Pixels pixels;
  const std::uint32_t result_height = turn.swaps_axes ? spec_.width : spec_.height;
  const std::uint32_t result_width = turn.swaps_axes ? spec_.height : spec_.width;
  if (!codec->decode(stored_window(chosen, header, turn), result_height, result_width,
                     spec_.channels, pixels)) {
    problem_ = codec->problem();
    return false;
  }
  resizer_.resize(pixels, spec_, turn, chosen.flipped, out);
  const auto number = [](std::uint32_t value) { return static_cast<std::int32_t>(value); };
  crop = {number(chosen.top), number(chosen.left), number(chosen.height),  number(chosen.width),
          number(height),     number(width),       chosen.flipped ? 1 : 0, 0};
  return true;
}

void ImageDecoder::write_grey(std::uint8_t* out) const noexcept {
  const std::size_t bytes = spec_.result_bytes();
  if (!spec_.is_float) {
    std::memset(out, kGrey, bytes);
    return;
  }
  std::fill_n(reinterpret_cast<float*>(out), bytes / sizeof(float), float{kGrey});
}

}  // namespace tfrfast
