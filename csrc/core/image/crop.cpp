#include "core/image/crop.h"

#include <algorithm>

#include "core/order/siphash.h"

namespace tfrfast {
namespace {

__extension__ using Wide = unsigned __int128;

// Keeps image draws apart from every other use of a seed.
constexpr std::uint64_t kDrawTag = 0x696d616765647261;
constexpr int kAttempts = 10;
constexpr std::uint64_t kFlipWord = 4 * kAttempts;

// Random words of a row, by number.
class Words {
 public:
  explicit Words(std::uint64_t draw) noexcept : key_{draw, kDrawTag} {}

  std::uint64_t word(std::uint64_t number) const noexcept { return siphash(key_, {number}); }

  // From `least` to `most`, both included.
  std::uint64_t uniform(std::uint64_t number, std::uint64_t least,
                        std::uint64_t most) const noexcept {
    return least + static_cast<std::uint64_t>(Wide{word(number)} * (most - least + 1) >> 64);
  }

 private:
  SipKey key_;
};

// The square root of `value`, rounded down.
std::uint64_t square_root(Wide value) noexcept {
  std::uint64_t root = 0;
  for (int bit = 62; bit >= 0; --bit) {
    const std::uint64_t larger = root | std::uint64_t{1} << bit;
    if (Wide{larger} * larger <= value) root = larger;
  }
  return root;
}

// sqrt(value / 2^32), to the nearest integer.
std::uint64_t rounded_root(Wide value) noexcept {
  return (square_root(value * 4 >> 32) + 1) / 2;
}

std::uint32_t rounded_share(std::uint64_t whole, std::uint64_t part, std::uint64_t of) noexcept {
  const auto share = static_cast<std::uint64_t>((Wide{whole} * part * 2 + of) / (Wide{of} * 2));
  return static_cast<std::uint32_t>(std::max<std::uint64_t>(share, 1));
}

// The largest window in the middle whose width divided by its height is width / height.
Crop middle_of_shape(std::uint32_t image_height, std::uint32_t image_width, std::uint64_t height,
                     std::uint64_t width) noexcept {
  Crop crop{0, 0, image_height, image_width};
  if (Wide{image_width} * height > Wide{image_height} * width) {
    crop.width = std::min(rounded_share(image_height, width, height), image_width);
  } else {
    crop.height = std::min(rounded_share(image_width, height, width), image_height);
  }
  crop.top = (image_height - crop.height) / 2;
  crop.left = (image_width - crop.width) / 2;
  return crop;
}

Crop random_crop(const ImageSpec& spec, std::uint32_t image_height, std::uint32_t image_width,
                 const Words& words) noexcept {
  const std::uint64_t pixels = std::uint64_t{image_height} * image_width;
  for (std::uint64_t attempt = 0; attempt < kAttempts; ++attempt) {
    const Wide area = Wide{pixels} * words.uniform(4 * attempt, spec.min_area, spec.max_area);
    const Fixed32 ratio = words.uniform(4 * attempt + 1, spec.min_ratio, spec.max_ratio);
    const std::uint64_t width = rounded_root(area * ratio >> 32);
    const std::uint64_t height = rounded_root((area << 32) / ratio);
    if (width < 1 || width > image_width || height < 1 || height > image_height) continue;
    Crop crop;
    crop.height = static_cast<std::uint32_t>(height);
    crop.width = static_cast<std::uint32_t>(width);
    crop.top = static_cast<std::uint32_t>(words.uniform(4 * attempt + 2, 0, image_height - height));
    crop.left = static_cast<std::uint32_t>(words.uniform(4 * attempt + 3, 0, image_width - width));
    return crop;
  }
  // No attempt fits: take the middle, in the nearest allowed shape.
  const Fixed32 own = (std::uint64_t{image_width} << 32) / image_height;
  return middle_of_shape(image_height, image_width, kFixedOne,
                         std::clamp(own, spec.min_ratio, spec.max_ratio));
}

}  // namespace

std::uint64_t image_draw(std::uint64_t seed, std::uint64_t epoch, std::uint64_t position,
                         std::uint64_t row) noexcept {
  return siphash({seed, kDrawTag}, {epoch, position, row});
}

std::uint64_t frame_draw(std::uint64_t draw, std::uint64_t frame) noexcept {
  return siphash({draw, kDrawTag}, {kFlipWord + 1, frame});
}

Crop choose_crop(const ImageSpec& spec, std::uint32_t image_height, std::uint32_t image_width,
                 std::uint64_t draw) noexcept {
  Crop crop{0, 0, image_height, image_width};
  const Words words(draw);
  if (spec.crop == CropKind::center) {
    crop = middle_of_shape(image_height, image_width, spec.height, spec.width);
  } else if (spec.crop == CropKind::random) {
    crop = random_crop(spec, image_height, image_width, words);
  }
  crop.flipped = spec.flips && words.word(kFlipWord) >> 63 != 0;
  return crop;
}

}  // namespace tfrfast
