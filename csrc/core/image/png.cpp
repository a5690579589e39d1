// PNG by libpng. A PNG is decoded whole, since its rows depend on one another.
#include "core/image/image_codec.h"

#ifdef TFRFAST_HAS_PNG

#include <csetjmp>

#include <png.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "core/image/exif.h"

namespace tfrfast {
namespace {

constexpr std::size_t kFirstChunk = 8;
constexpr std::size_t kHeaderBytes = 26;  // to the end of the color type
constexpr std::size_t kChunkBytes = 12;   // of a chunk's length, type and checksum
constexpr std::size_t kMaxChunkBytes = std::size_t{64} << 20;
constexpr int kMaxCachedChunks = 100;

std::uint32_t big_endian(const std::uint8_t* bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 |
         std::uint32_t{bytes[2]} << 8 | bytes[3];
}

// Returns the contents of the first chunk of a type, or nothing.
EncodedImage chunk_of(EncodedImage image, std::string_view type) {
  EncodedImage rest = image.subspan(kFirstChunk);
  while (rest.size() >= kChunkBytes) {
    const std::size_t length = big_endian(rest.data());
    if (length > rest.size() - kChunkBytes) break;
    const std::string_view found(reinterpret_cast<const char*>(rest.data()) + 4, 4);
    if (found == type) return rest.subspan(8, length);
    if (found == "IEND") break;
    rest = rest.subspan(kChunkBytes + length);
  }
  return {};
}

// The bytes left to read, and libpng's error message.
struct Reading {
  EncodedImage rest;
  char message[128];
};

void read_bytes(png_structp png, png_bytep out, std::size_t count) {
  Reading& reading = *static_cast<Reading*>(png_get_io_ptr(png));
  if (count > reading.rest.size()) png_error(png, "it ends early");
  std::memcpy(out, reading.rest.data(), count);
  reading.rest = reading.rest.subspan(count);
}

[[noreturn]] void fail(png_structp png, png_const_charp message) {
  Reading& reading = *static_cast<Reading*>(png_get_error_ptr(png));
  std::snprintf(reading.message, sizeof reading.message, "%s", message);
  png_longjmp(png, 1);
}

void ignore(png_structp, png_const_charp) {}

class PngCodec final : public ImageCodec {
 public:
  bool read_header(EncodedImage image, ImageHeader& header) override {
    image_ = image;
    if (image.size() < kHeaderBytes) {
      problem_ = "it ends early";
      return false;
    }
    header = {big_endian(image.data() + 20), big_endian(image.data() + 16),
              exif_orientation(chunk_of(image, "eXIf")).value_or(1)};
    if (header.height != 0 && header.width != 0) return true;
    problem_ = "it has no pixels";
    return false;
  }

  bool decode(const StoredWindow& window, std::uint32_t, std::uint32_t, std::uint32_t channels,
              Pixels& pixels) override {
    const std::uint32_t height = big_endian(image_.data() + 20);
    const std::uint32_t width = big_endian(image_.data() + 16);
    const bool has_color = (image_[kHeaderBytes - 1] & PNG_COLOR_MASK_COLOR) != 0;
    pixels.channels = channels == 1 && !has_color ? 1 : kColorChannels;
    const std::size_t row_bytes = std::size_t{width} * pixels.channels;
    const std::size_t needed = row_bytes * height;
    if (memory_.capacity() < needed) memory_ = PooledBuffer(needed);
    Reading reading{image_, {}};
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reading, &fail, &ignore);
    png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
    const bool done =
        info != nullptr && read_rows(png, info, reading, height, width, pixels.channels, row_bytes);
    if (!done) problem_ = info == nullptr ? "libpng could not begin" : reading.message;
    if (png != nullptr) png_destroy_read_struct(&png, &info, nullptr);
    if (done && channels == 1 && has_color) {
      make_grey(memory_.data(), std::size_t{height} * width);
      pixels.channels = 1;
    }
    pixels.data = memory_.data();
    pixels.height = height;
    pixels.width = width;
    pixels.window_top = window.top;
    pixels.window_left = window.left;
    pixels.window_height = window.height;
    pixels.window_width = window.width;
    return done;
  }

 private:
  // libpng jumps out of here when it fails, so no object here has a destructor.
  bool read_rows(png_structp png, png_infop info, Reading& reading, std::uint32_t height,
                 std::uint32_t width, std::uint32_t channels, std::size_t row_bytes) {
    if (setjmp(png_jmpbuf(png)) != 0) return false;
    png_set_user_limits(png, width, height);
    png_set_chunk_malloc_max(png, kMaxChunkBytes);
    png_set_chunk_cache_max(png, kMaxCachedChunks);
    png_set_read_fn(png, &reading, &read_bytes);
    png_read_info(png, info);
    png_set_expand(png);
    png_set_strip_16(png);
    png_set_strip_alpha(png);
    if (channels != 1) {
      if ((png_get_color_type(png, info) & PNG_COLOR_MASK_COLOR) == 0) png_set_gray_to_rgb(png);
      png_set_filler(png, 0xff, PNG_FILLER_AFTER);
    }
    const int passes = png_set_interlace_handling(png);
    png_read_update_info(png, info);
    if (png_get_rowbytes(png, info) != row_bytes || png_get_image_height(png, info) != height) {
      png_error(png, "its first chunk is not its header");
    }
    for (int pass = 0; pass < passes; ++pass) {
      for (std::uint32_t row = 0; row < height; ++row) {
        png_read_row(png, memory_.data() + row * row_bytes, nullptr);
      }
    }
    png_read_end(png, nullptr);
    return true;
  }

  EncodedImage image_;
  PooledBuffer memory_;
};

}  // namespace

std::unique_ptr<ImageCodec> make_png_codec() {
  return std::make_unique<PngCodec>();
}

}  // namespace tfrfast

#else

namespace tfrfast {

std::unique_ptr<ImageCodec> make_png_codec() {
  return nullptr;
}

}  // namespace tfrfast

#endif
