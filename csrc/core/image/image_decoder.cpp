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

// Returns the window of the stored image that becomes `crop` in the upright image.
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
    : spec_(spec), result_(spec), jpeg_(make_jpeg_codec()), png_(make_png_codec()) {
  if (jpeg_ == nullptr || png_ == nullptr) throw Error(ErrorKind::invalid, kNoCodecs);
}

bool ImageDecoder::begin(EncodedImage image, std::uint64_t draw) {
  return choose(image, draw) || give_up();
}

bool ImageDecoder::finish(std::uint8_t* out) {
  if (crop_.damaged == 0 && !decode(out) && !give_up()) return false;
  if (crop_.damaged != 0) write_grey(out);
  return true;
}

bool ImageDecoder::give_up() noexcept {
  if (!spec_.grey_if_damaged) return false;
  crop_ = {};
  crop_.damaged = 1;
  result_ = spec_;
  return true;
}

bool ImageDecoder::choose(EncodedImage image, std::uint64_t draw) {
  if (looks_like_jpeg(image)) {
    codec_ = jpeg_.get();
  } else if (looks_like_png(image)) {
    codec_ = png_.get();
  } else {
    problem_ = image.empty() ? "the string is empty" : "it is neither a JPEG nor a PNG";
    return false;
  }
  if (!codec_->read_header(image, header_)) {
    problem_ = codec_->problem();
    return false;
  }
  std::uint32_t height = header_.height, width = header_.width;
  if (std::uint64_t{height} * width > spec_.max_pixels) {
    problem_ = "it has " + std::to_string(height) + " x " + std::to_string(width) +
               " pixels, and max_pixels is " + std::to_string(spec_.max_pixels);
    return false;
  }
  if (!spec_.turns_upright) header_.orientation = 1;
  if (turn_of(header_.orientation).swaps_axes) std::swap(height, width);
  chosen_ = choose_crop(spec_, height, width, draw);
  const auto number = [](std::uint32_t value) { return static_cast<std::int32_t>(value); };
  crop_ = {
      number(chosen_.top), number(chosen_.left), number(chosen_.height),  number(chosen_.width),
      number(height),      number(width),        chosen_.flipped ? 1 : 0, 0};
  if (spec_.keeps_sizes()) {
    result_.height = chosen_.height;
    result_.width = chosen_.width;
  }
  return true;
}

bool ImageDecoder::decode(std::uint8_t* out) {
  const Turn turn = turn_of(header_.orientation);
  Pixels pixels;
  const std::uint32_t result_height = turn.swaps_axes ? result_.width : result_.height;
  const std::uint32_t result_width = turn.swaps_axes ? result_.height : result_.width;
  if (!codec_->decode(stored_window(chosen_, header_, turn), result_height, result_width,
                      spec_.channels, pixels)) {
    problem_ = codec_->problem();
    return false;
  }
  resizer_.resize(pixels, result_, turn, chosen_.flipped, out);
  return true;
}

void ImageDecoder::write_grey(std::uint8_t* out) const noexcept {
  const std::size_t bytes = result_.result_bytes();
  if (!spec_.is_float) {
    std::memset(out, kGrey, bytes);
    return;
  }
  std::fill_n(reinterpret_cast<float*>(out), bytes / sizeof(float), float{kGrey});
}

}  // namespace tfrfast
