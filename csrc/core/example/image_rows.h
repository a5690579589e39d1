// The pictures of a column of images, which are decoded as they are put.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/pool.h"
#include "core/example/wire.h"
#include "core/image/image_decoder.h"

namespace tfrfast {

// Height, width and channels.
inline constexpr std::size_t kShapeSize = 3;

// Pictures are numbered through all rows: a row has one picture or, with windows, one for each
// step. Windows share steps, so a picture that a batch already has is not decoded again. One
// thread.
class ImageRows {
 public:
  explicit ImageRows(const ImageSpec& spec) : decoder_(spec), spec_(spec) {}

  // Drops the pictures of the last batch. Throws OutOfMemory.
  void begin(std::size_t rows);

  // For the row that is put next.
  void set_draw(std::uint64_t draw) noexcept { draw_ = draw; }
  // Begins a row with several pictures, perhaps again.
  void begin_row(std::size_t row);

  // Begins to decode `image`, and then writes its result_bytes() to place `at` of `pixels`, which
  // still has all earlier pictures. False for an image that cannot be decoded; problem() says why.
  // Throws OutOfMemory.
  bool begin_picture(std::size_t picture, WireBytes image);
  bool finish_picture(std::size_t picture, WireBytes image, std::uint8_t* pixels, std::size_t at);
  std::size_t result_bytes() const noexcept { return result_bytes_; }

  // The picture of an empty string is black, until the row's end shows whether it is padding.
  bool has_black() const noexcept { return !black_.empty(); }
  // False if a black picture of the row is not padding, and no grey one may stand in; problem()
  // says which. `is_real` has an entry for each picture, or is empty if all are real.
  bool settle_black(const std::vector<bool>& is_real, std::uint8_t* pixels);

  const std::string& problem() const noexcept { return problem_; }

  // The height, width and channels of the first pictures, as int64. Throws OutOfMemory.
  PooledBuffer shapes(std::size_t pictures) const;
  // Ends the batch. Returns an ImageCrop for each picture.
  PooledBuffer take_crops() noexcept;

 private:
  static constexpr std::size_t kNoPicture = ~std::size_t{0};

  // A picture of this batch.
  struct KnownPicture {
    std::string image;
    std::uint64_t draw = 0;
    std::size_t picture = 0;
    std::size_t at = 0;
    std::size_t bytes = 0;
  };

  bool is_last(std::size_t picture, WireBytes image) const noexcept {
    return picture == last_picture_ && image.data() == last_image_.data() &&
           image.size() == last_image_.size();
  }
  std::uint64_t draw_of(std::size_t picture) const noexcept;
  const KnownPicture* find(std::size_t picture, WireBytes image) const;
  bool fail(std::size_t picture);

  ImageDecoder decoder_;
  ImageSpec spec_;
  std::uint64_t draw_ = 0;
  PooledBuffer crops_;
  std::size_t result_bytes_ = 0;
  std::string problem_;
  // The last image that was decoded, whose pixels are still in place. A record of an unusual form
  // is decoded twice, but not its only image.
  std::size_t last_picture_ = kNoPicture;
  WireBytes last_image_;
  // Of windows. By a hash of the encoded image, of which a copy is compared.
  std::unordered_multimap<std::uint64_t, KnownPicture> known_;
  const KnownPicture* same_ = nullptr;  // as the picture that was begun
  std::size_t row_ = kNoPicture;
  struct Black {
    std::size_t picture = 0;
    std::size_t at = 0;
  };
  std::vector<Black> black_;  // of the row
};

}  // namespace tfrfast
