// Encoded images in, pixels of one size out.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/image/crop.h"
#include "core/image/image_codec.h"
#include "core/image/image_spec.h"
#include "core/image/resize.h"

namespace tfrfast {

// What was done to one image.
struct ImageCrop {
  std::int32_t top = 0;
  std::int32_t left = 0;
  std::int32_t height = 0;
  std::int32_t width = 0;
  std::int32_t image_height = 0;
  std::int32_t image_width = 0;
  std::int32_t flipped = 0;
  std::int32_t damaged = 0;  // then it is grey, and the rest is 0
};

// Decodes image after image. One thread.
class ImageDecoder {
 public:
  // Throws Error(invalid) if tfrfast was built without a codec for images.
  explicit ImageDecoder(const ImageSpec& spec);

  // Writes spec.result_bytes() to `out`. False if the image is damaged, of another format or too
  // large; problem() says so then. If the spec asks for grey instead, `crop` says that it is
  // damaged. Throws OutOfMemory.
  bool decode(EncodedImage image, std::uint64_t draw, std::uint8_t* out, ImageCrop& crop);

  const std::string& problem() const noexcept { return problem_; }

 private:
  bool decode_whole(EncodedImage image, std::uint64_t draw, std::uint8_t* out, ImageCrop& crop);
  void write_grey(std::uint8_t* out) const noexcept;

  ImageSpec spec_;
  std::unique_ptr<ImageCodec> jpeg_;
  std::unique_ptr<ImageCodec> png_;
  Resizer resizer_;
  std::string problem_;
};

}  // namespace tfrfast
