#include "core/example/image_rows.h"

#include <algorithm>
#include <cstring>

#include "core/crc32c/crc32c.h"

namespace tfrfast {
namespace {

std::uint64_t hash_of_picture(WireBytes image) noexcept {
  return std::uint64_t{image.size()} << 32 | crc32c(image.data(), image.size());
}

}  // namespace

void ImageRows::begin(std::size_t rows) {
  crops_ = PooledBuffer(std::max<std::size_t>(rows * spec_.pictures(), 1) * sizeof(ImageCrop));
  last_picture_ = row_ = kNoPicture;
  known_.clear();
  draw_ = 0;
}

void ImageRows::begin_row(std::size_t row) {
  // Pictures that are put again may overwrite other pictures, and rows with draws share none.
  if (row == row_ || spec_.is_random()) known_.clear();
  row_ = row;
  black_.clear();
}

std::uint64_t ImageRows::draw_of(std::size_t picture) const noexcept {
  if (!spec_.is_random()) return 0;
  return spec_.draws_each ? frame_draw(draw_, picture % spec_.pictures()) : draw_;
}

const ImageRows::KnownPicture* ImageRows::find(std::size_t picture, WireBytes image) const {
  const auto [first, last] = known_.equal_range(hash_of_picture(image));
  const auto found = std::find_if(first, last, [&](const auto& each) {
    const KnownPicture& known = each.second;
    return known.draw == draw_of(picture) && known.image.size() == image.size() &&
           std::memcmp(known.image.data(), image.data(), image.size()) == 0;
  });
  return found == last ? nullptr : &found->second;
}

bool ImageRows::fail(std::size_t picture) {
  problem_ = decoder_.problem();
  if (spec_.frames > 0) {
    problem_ = "picture " + std::to_string(picture % spec_.frames) + " of its window: " + problem_;
  }
  return false;
}

bool ImageRows::begin_picture(std::size_t picture, WireBytes image) {
  same_ = nullptr;
  if (spec_.frames > 0) {
    if (image.empty()) {
      result_bytes_ = spec_.result_bytes();
      return true;
    }
    same_ = find(picture, image);
    if (same_ != nullptr) {
      result_bytes_ = same_->bytes;
      return true;
    }
  } else if (is_last(picture, image)) {
    return true;
  }
  last_picture_ = kNoPicture;
  if (!decoder_.begin(image, draw_of(picture))) return fail(picture);
  result_bytes_ = decoder_.result_bytes();
  return true;
}

bool ImageRows::finish_picture(std::size_t picture, WireBytes image, std::uint8_t* pixels,
                               std::size_t at) {
  ImageCrop& crop = crops_.as<ImageCrop>()[picture];
  if (spec_.frames > 0 && image.empty()) {
    if (result_bytes_ != 0) std::memset(pixels + at, 0, result_bytes_);
    crop = {};
    black_.push_back({picture, at});
    return true;
  }
  if (same_ != nullptr) {
    std::memcpy(pixels + at, pixels + same_->at, result_bytes_);
    crop = crops_.as<ImageCrop>()[same_->picture];
    return true;
  }
  if (is_last(picture, image)) return true;
  if (!decoder_.finish(pixels + at)) return fail(picture);
  result_bytes_ = decoder_.result_bytes();
  crop = decoder_.crop();
  last_picture_ = picture;
  last_image_ = image;
  if (spec_.frames > 0) {
    std::string copy(reinterpret_cast<const char*>(image.data()), image.size());
    known_.emplace(hash_of_picture(image),
                   KnownPicture{std::move(copy), draw_of(picture), picture, at, result_bytes_});
  }
  return true;
}

bool ImageRows::settle_black(const std::vector<bool>& is_real, std::uint8_t* pixels) {
  for (const auto& [picture, at] : black_) {
    if (!is_real.empty() && !is_real[picture % spec_.frames]) continue;
    if (!decoder_.begin({}, 0) || !decoder_.finish(pixels + at)) return fail(picture);
    crops_.as<ImageCrop>()[picture] = decoder_.crop();
  }
  return true;
}

PooledBuffer ImageRows::take_crops() noexcept {
  known_.clear();
  return std::move(crops_);
}

PooledBuffer ImageRows::shapes(std::size_t pictures) const {
  PooledBuffer shapes(std::max<std::size_t>(pictures, 1) * kShapeSize * sizeof(std::int64_t));
  auto* out = shapes.as<std::int64_t>();
  for (std::size_t picture = 0; picture < pictures; ++picture) {
    const ImageCrop& crop = crops_.as<ImageCrop>()[picture];
    *out++ = crop.height;
    *out++ = crop.width;
    *out++ = spec_.channels;
  }
  return shapes;
}

}  // namespace tfrfast
