#include "core/image/image_spec.h"

#include <string>

#include "core/base/choice.h"
#include "core/base/error.h"

namespace tfrfast {
namespace {

constexpr Choice<CropKind> kCrops[] = {
    {"none", CropKind::whole}, {"center", CropKind::center}, {"random", CropKind::random}};
constexpr Choice<ResizeKind> kResizes[] = {{"area", ResizeKind::area},
                                           {"bilinear", ResizeKind::bilinear}};

constexpr std::uint32_t kMaxSide = 1 << 14;
constexpr std::uint32_t kMaxFrames = 1 << 16;
constexpr std::uint64_t kMaxPixels = std::uint64_t{1} << 29;
constexpr Fixed32 kLargestRatio = 1000 * kFixedOne;
constexpr Fixed32 kSmallestRatio = kFixedOne / 1000;

void require(bool holds, const char* what) {
  if (!holds) throw Error(ErrorKind::invalid, std::string("An Image's ") + what);
}

}  // namespace

CropKind crop_named(std::string_view name) {
  return choose("crop", name, kCrops);
}

ResizeKind resize_named(std::string_view name) {
  return choose("resize", name, kResizes);
}

void check(const ImageSpec& spec) {
  if (spec.keeps_sizes()) {
    require(spec.crop != CropKind::center, "crop=\"center\" needs a size, which gives the shape.");
    require(!spec.channels_first, "layout=\"CHW\" needs a size. Transpose each picture instead.");
  } else {
    require(
        spec.height >= 1 && spec.height <= kMaxSide && spec.width >= 1 && spec.width <= kMaxSide,
        "size is (height, width), each from 1 to 16,384.");
  }
  require(spec.channels == 1 || spec.channels == 3, "channels must be 1 or 3.");
  require(spec.frames <= kMaxFrames, "frames must be from 1 to 65,536.");
  require(spec.min_area >= 1 && spec.min_area <= spec.max_area && spec.max_area <= kFixedOne,
          "area is (smallest, largest), above 0 and at most 1.");
  require(spec.min_ratio >= kSmallestRatio && spec.min_ratio <= spec.max_ratio &&
              spec.max_ratio <= kLargestRatio,
          "ratio is (smallest, largest), from 1/1000 to 1000.");
  require(spec.max_pixels >= 1 && spec.max_pixels <= kMaxPixels,
          "max_pixels must be from 1 to 2**29.");
}

}  // namespace tfrfast
