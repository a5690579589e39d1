// Encoded images in, pixels out.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/image/crop.h"
#include "core/image/image_codec.h"
#include "core/image/image_spec.h"
#include "core/image/resize.h"

namespace tfrfast {

// How an image was cut.
struct ImageCrop {
  std::int32_t top = 0;
  std::int32_t left = 0;
  std::int32_t height = 0;
  std::int32_t width = 0;
  std::int32_t image_height = 0;
  std::int32_t image_width = 0;
  std::int32_t flipped = 0;
  std::int32_t damaged = 0;  // if 1, the row is grey or empty, and the other fields are 0
};

// Decodes images one by one. One thread.
class ImageDecoder {
 public:
  // Throws Error(invalid) in a build without image codecs.
  explicit ImageDecoder(const ImageSpec& spec);

  // Reads the header of `image`, and chooses the window. The bytes of `image` must not change
  // before finish(). Returns false for a damaged, unknown or too large image, and problem() holds
  // the reason.
  //
  // If the spec asks for grey, begin() and finish() set crop().damaged and return true instead. The
  // result is then grey, or empty without a size.
  bool begin(EncodedImage image, std::uint64_t draw);
  // Writes result_bytes() to `out`. May change crop() and result_bytes(). Throws OutOfMemory.
  bool finish(std::uint8_t* out);

  // Of the image that was begun last.
  std::size_t result_bytes() const noexcept { return result_.result_bytes(); }
  const ImageCrop& crop() const noexcept { return crop_; }
  const std::string& problem() const noexcept { return problem_; }

 private:
  bool choose(EncodedImage image, std::uint64_t draw);
  bool decode(std::uint8_t* out);
  bool give_up() noexcept;
  void write_grey(std::uint8_t* out) const noexcept;

  ImageSpec spec_;
  ImageSpec result_;  // with the size of this image's result
  ImageCodec* codec_ = nullptr;
  ImageHeader header_;
  Crop chosen_;
  ImageCrop crop_;
  std::unique_ptr<ImageCodec> jpeg_;
  std::unique_ptr<ImageCodec> png_;
  Resizer resizer_;
  std::string problem_;
};

}  // namespace tfrfast
