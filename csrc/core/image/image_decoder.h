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

// How an image was cut.
struct ImageCrop {
  std::int32_t top = 0;
  std::int32_t left = 0;
  std::int32_t height = 0;
  std::int32_t width = 0;
  std::int32_t image_height = 0;
  std::int32_t image_width = 0;
  std::int32_t flipped = 0;
  std::int32_t damaged = 0;  // if 1, the row is grey and the other fields are 0
};

// Decodes images one by one. One thread.
class ImageDecoder {
 public:
  // Throws Error(invalid) in a build without image codecs.
  explicit ImageDecoder(const ImageSpec& spec);

  // Writes spec.result_bytes() to `out`. Returns false for a damaged, unknown or too large image,
  // and problem() holds the reason. If the spec asks for grey, writes grey, sets crop.damaged and
  // returns true instead. Throws OutOfMemory.
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
