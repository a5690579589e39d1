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

// The facts in an image's header.
struct ImageHeader {
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  int orientation = 1;  // EXIF, 1 to 8; 1 is upright
};

// A window of the stored image, in pixels.
struct StoredWindow {
  std::uint32_t top = 0;
  std::uint32_t left = 0;
  std::uint32_t height = 0;
  std::uint32_t width = 0;
};

// Decoded pixels around a window, at the codec's scale. Rows lie end to end.
struct Pixels {
  const std::uint8_t* data = nullptr;
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  std::uint32_t channels = 0;  // 1 or kColorChannels
  // The requested window, in these pixels.
  double window_top = 0;
  double window_left = 0;
  double window_height = 0;
  double window_width = 0;
};

// Decodes images one by one. One thread. A damaged image makes a call return false, and never
// throw.
class ImageCodec {
 public:
  virtual ~ImageCodec() = default;

  // Returns false for a damaged or unknown image. problem() holds the reason.
  virtual bool read_header(EncodedImage image, ImageHeader& header) = 0;

  // Decodes a window of the last read_header()'s image, for a result of `height` by `width` pixels
  // of 1 or 3 channels. The codec owns the pixels until its next call. Throws OutOfMemory.
  virtual bool decode(const StoredWindow& window, std::uint32_t height, std::uint32_t width,
                      std::uint32_t channels, Pixels& pixels) = 0;

  // Why the last call returned false, as half a sentence.
  const std::string& problem() const noexcept { return problem_; }

 protected:
  std::string problem_;
};

// True in a build with both codecs.
bool has_image_codecs();

// Null in a build without the library.
std::unique_ptr<ImageCodec> make_jpeg_codec();
std::unique_ptr<ImageCodec> make_png_codec();

bool looks_like_jpeg(EncodedImage image) noexcept;
bool looks_like_png(EncodedImage image) noexcept;

// Values of a decoded pixel with color; the fourth is unused.
inline constexpr std::uint32_t kColorChannels = 4;
// Makes grey pixels of `count` pixels with color, in place: the luma of BT.601, rounded.
void make_grey(std::uint8_t* pixels, std::size_t count) noexcept;

}  // namespace tfrfast
