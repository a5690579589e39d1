// The codecs of encoded images, behind one interface.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/base/pool.h"

namespace tfrfast {

using EncodedImage = std::span<const std::uint8_t>;

// What an image says of itself before its pixels.
struct ImageHeader {
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  int orientation = 1;  // of EXIF, from 1 to 8; 1 is upright
};

// A window of an image as it is stored, in pixels.
struct StoredWindow {
  std::uint32_t top = 0;
  std::uint32_t left = 0;
  std::uint32_t height = 0;
  std::uint32_t width = 0;
};

// Decoded pixels: a window, in a scale that the codec chose. Rows lie end to end.
struct Pixels {
  const std::uint8_t* data = nullptr;
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  std::uint32_t channels = 0;  // 1, or 4, of which the last one means nothing
  // Where the window that was asked for lies among these pixels, which may be more.
  double window_top = 0;
  double window_left = 0;
  double window_height = 0;
  double window_width = 0;
};

// Decodes image after image. One thread. Never throws for what an image holds.
class ImageCodec {
 public:
  virtual ~ImageCodec() = default;

  // False if the image is damaged, or not one that the codec knows. problem() says why then.
  virtual bool read_header(EncodedImage image, ImageHeader& header) = 0;

  // Decodes a window of the image of the last read_header(), for a result of `height` by `width`
  // pixels of `channels` 1 or 3. The pixels are the codec's, until its next call. Throws
  // OutOfMemory.
  virtual bool decode(const StoredWindow& window, std::uint32_t height, std::uint32_t width,
                      std::uint32_t channels, Pixels& pixels) = 0;

  // What was wrong in the last call that returned false, as half a sentence.
  const std::string& problem() const noexcept { return problem_; }

 protected:
  std::string problem_;
};

// Whether tfrfast was built with both codecs.
bool has_image_codecs();

// Null if tfrfast was built without the library.
std::unique_ptr<ImageCodec> make_jpeg_codec();
std::unique_ptr<ImageCodec> make_png_codec();

bool looks_like_jpeg(EncodedImage image) noexcept;
bool looks_like_png(EncodedImage image) noexcept;

}  // namespace tfrfast
