// JPEG by libjpeg-turbo. Decodes only the rows and columns of the window, at 1/2, 1/4 or 1/8 scale
// if the result is that much smaller.
#include "core/image/image_codec.h"

#ifdef TFRFAST_HAS_JPEG

#include <csetjmp>
#include <cstdio>  // jpeglib.h needs it

#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <cstring>

#include "core/image/exif.h"

namespace tfrfast {
namespace {

// Upsampled colors depend on neighbours, so a few more pixels are decoded on each side.
constexpr std::uint32_t kMargin = 4;
// Each scan of a progressive image visits every pixel.
constexpr int kMaxScans = 500;

// libjpeg's state. An error jumps to `failed`, so functions that call libjpeg hold no object with a
// destructor.
struct Decompress {
  jpeg_decompress_struct info;
  jpeg_error_mgr errors;
  jpeg_source_mgr source;
  jpeg_progress_mgr progress;
  std::jmp_buf failed;
  char message[JMSG_LENGTH_MAX];
  bool at_end;  // libjpeg asked for bytes past the end
  bool cut_short;
};

Decompress& of(j_common_ptr info) {
  return *static_cast<Decompress*>(info->client_data);
}
Decompress& of(j_decompress_ptr info) {
  return *static_cast<Decompress*>(info->client_data);
}

[[noreturn]] void fail(j_common_ptr info) {
  info->err->format_message(info, of(info).message);
  std::longjmp(of(info).failed, 1);
}

void note_warning(j_common_ptr info, int level) {
  if (level >= 0) return;
  ++info->err->num_warnings;
  if (info->err->msg_code == JWRN_HIT_MARKER && of(info).at_end) of(info).cut_short = true;
}

void print_nothing(j_common_ptr) {}

void begin_source(j_decompress_ptr) {}

// Called at the end of the bytes. Supplies an end marker, so that libjpeg warns instead of waiting.
boolean fill_source(j_decompress_ptr info) {
  static constexpr JOCTET kEnd[] = {0xff, JPEG_EOI};
  of(info).at_end = true;
  info->src->next_input_byte = kEnd;
  info->src->bytes_in_buffer = sizeof kEnd;
  return TRUE;
}

void skip_source(j_decompress_ptr info, long bytes) {
  if (bytes <= 0) return;
  if (static_cast<std::size_t>(bytes) > info->src->bytes_in_buffer) {
    fill_source(info);
    return;
  }
  info->src->next_input_byte += bytes;
  info->src->bytes_in_buffer -= static_cast<std::size_t>(bytes);
}

void end_source(j_decompress_ptr) {}

void watch_scans(j_common_ptr common) {
  if (!common->is_decompressor) return;
  const auto* const info = reinterpret_cast<j_decompress_ptr>(common);
  if (info->input_scan_number <= kMaxScans) return;
  std::snprintf(of(common).message, JMSG_LENGTH_MAX, "it has more than %d scans", kMaxScans);
  std::longjmp(of(common).failed, 1);
}

class JpegCodec final : public ImageCodec {
 public:
  JpegCodec() = default;
  ~JpegCodec() override { jpeg_destroy_decompress(&jpeg_.info); }
  JpegCodec(const JpegCodec&) = delete;
  JpegCodec& operator=(const JpegCodec&) = delete;

  bool read_header(EncodedImage image, ImageHeader& header) override {
    image_ = image;
    return guarded(begin(header));
  }

  bool decode(const StoredWindow& window, std::uint32_t height, std::uint32_t width,
              std::uint32_t channels, Pixels& pixels) override {
    unsigned scale = 1;
    while (scale < 8 && window.height >= 2 * scale * height && window.width >= 2 * scale * width) {
      scale *= 2;
    }
    jpeg_.info.scale_num = 1;
    jpeg_.info.scale_denom = scale;
    std::uint32_t top = 0, rows = 0;
    if (!guarded(start(window, channels, pixels, top, rows))) return false;
    const std::size_t row_bytes = std::size_t{pixels.width} * pixels.channels;
    // libjpeg writes in whole groups of pixels.
    constexpr std::size_t kPastRow = 64;
    const std::size_t needed = row_bytes * rows + kPastRow;
    if (memory_.capacity() < needed) memory_ = PooledBuffer(needed);
    pixels.data = memory_.data();
    pixels.height = rows;
    const bool is_whole = guarded(read_rows(top, rows, row_bytes));
    jpeg_destroy_decompress(&jpeg_.info);
    if (!is_whole) return false;
    const std::size_t pixel_count = rows * std::size_t{pixels.width};
    if (jpeg_.info.out_color_space == JCS_CMYK) make_rgb(pixel_count);
    if (channels == 1 && pixels.channels != 1) {
      make_grey(memory_.data(), pixel_count);
      pixels.channels = 1;
    }
    return true;
  }

 private:
  // Makes a decompressor for one picture. A decompressor that is used again would decode a picture
  // without tables of its own, such as a frame of Motion JPEG, by the tables of the last.
  void make() {
    jpeg_.info.client_data = &jpeg_;
    jpeg_.info.err = jpeg_std_error(&jpeg_.errors);
    jpeg_.errors.error_exit = &fail;
    jpeg_.errors.emit_message = &note_warning;
    jpeg_.errors.output_message = &print_nothing;
    jpeg_create_decompress(&jpeg_.info);
    jpeg_.source.init_source = &begin_source;
    jpeg_.source.fill_input_buffer = &fill_source;
    jpeg_.source.skip_input_data = &skip_source;
    jpeg_.source.resync_to_restart = &jpeg_resync_to_restart;
    jpeg_.source.term_source = &end_source;
    jpeg_.info.src = &jpeg_.source;
    jpeg_.progress.progress_monitor = &watch_scans;
    jpeg_.info.progress = &jpeg_.progress;
    jpeg_save_markers(&jpeg_.info, kExifMarker, 0xffff);
  }

  // Keeps the message of a failed call. Returns `done`.
  bool guarded(bool done) {
    if (!done) {
      problem_.assign(jpeg_.at_end ? "it ends early" : jpeg_.message);
      jpeg_destroy_decompress(&jpeg_.info);
    }
    return done;
  }

  bool say(const char* what) {
    std::snprintf(jpeg_.message, JMSG_LENGTH_MAX, "%s", what);
    return false;
  }

  bool begin(ImageHeader& header) {
    jpeg_destroy_decompress(&jpeg_.info);
    jpeg_ = {};
    if (setjmp(jpeg_.failed) != 0) return false;
    make();
    jpeg_.source.next_input_byte = image_.data();
    jpeg_.source.bytes_in_buffer = image_.size();
    jpeg_read_header(&jpeg_.info, TRUE);
    header.height = jpeg_.info.image_height;
    header.width = jpeg_.info.image_width;
    header.orientation = 1;
    for (auto marker = jpeg_.info.marker_list; marker != nullptr; marker = marker->next) {
      if (marker->marker != kExifMarker) continue;
      const auto orientation = exif_orientation({marker->data, marker->data_length});
      if (!orientation) continue;  // XMP, for example
      header.orientation = *orientation;
      break;
    }
    return true;
  }

  // Chooses the rows and columns of the scaled image to decode.
  bool start(const StoredWindow& window, std::uint32_t channels, Pixels& pixels, std::uint32_t& top,
             std::uint32_t& rows) {
    if (setjmp(jpeg_.failed) != 0) return false;
    const bool has_ink = jpeg_.info.num_components == 4;
    if (has_ink) {
      jpeg_.info.out_color_space = JCS_CMYK;
      pixels.channels = kColorChannels;
    } else if (channels == 1) {
      jpeg_.info.out_color_space = JCS_GRAYSCALE;
      pixels.channels = 1;
    } else {
      jpeg_.info.out_color_space = JCS_EXT_RGBX;
      pixels.channels = kColorChannels;
    }
    jpeg_start_decompress(&jpeg_.info);
    // All scans have been read; the last scans may be missing.
    if (jpeg_has_multiple_scans(&jpeg_.info) && jpeg_.at_end) return say("it ends early");
    const double scale = 1.0 / jpeg_.info.scale_denom;
    pixels.window_top = window.top * scale;
    pixels.window_left = window.left * scale;
    pixels.window_height = window.height * scale;
    pixels.window_width = window.width * scale;
    const std::uint32_t denominator = jpeg_.info.scale_denom;
    const auto before = [&](std::uint32_t at) {
      return std::max(at / denominator, kMargin) - kMargin;
    };
    const auto after = [&](std::uint32_t at, std::uint32_t end) {
      return std::min((at + denominator - 1) / denominator + kMargin, end);
    };
    top = before(window.top);
    rows = after(window.top + window.height, jpeg_.info.output_height) - top;
    JDIMENSION left = before(window.left);
    JDIMENSION columns = after(window.left + window.width, jpeg_.info.output_width) - left;
    if (columns < jpeg_.info.output_width) {
      jpeg_crop_scanline(&jpeg_.info, &left, &columns);
    }
    pixels.width = jpeg_.info.output_width;
    pixels.window_top -= top;
    pixels.window_left -= left;
    return true;
  }

  bool read_rows(std::uint32_t top, std::uint32_t rows, std::size_t row_bytes) {
    if (setjmp(jpeg_.failed) != 0) return false;
    if (top != 0) jpeg_skip_scanlines(&jpeg_.info, top);
    std::uint8_t* const data = memory_.data();
    const std::uint32_t end = top + rows;
    while (jpeg_.info.output_scanline < end) {
      constexpr std::uint32_t kAtOnce = 8;
      JSAMPROW lines[kAtOnce];
      const std::uint32_t first = jpeg_.info.output_scanline - top;
      const std::uint32_t count = std::min(kAtOnce, rows - first);
      for (std::uint32_t i = 0; i < count; ++i) lines[i] = data + (first + i) * row_bytes;
      if (jpeg_read_scanlines(&jpeg_.info, lines, count) == 0) return say("it ends early");
      // Arithmetic decoding goes on at the end without a warning.
      if (jpeg_.cut_short || (jpeg_.at_end && jpeg_.info.arith_code)) return say("it ends early");
    }
    return true;
  }

  // Files with Adobe's marker, nearly all of them, hold inverted inks.
  void make_rgb(std::size_t pixel_count) {
    std::uint8_t* pixel = memory_.data();
    const bool inverted = jpeg_.info.saw_Adobe_marker != 0;
    for (std::size_t i = 0; i < pixel_count; ++i, pixel += kColorChannels) {
      const int black = pixel[3];
      for (int channel = 0; channel < 3; ++channel) {
        const int ink = pixel[channel];
        pixel[channel] = static_cast<std::uint8_t>(inverted ? black * ink / 255
                                                            : (255 - black) * (255 - ink) / 255);
      }
    }
  }

  static constexpr int kExifMarker = JPEG_APP0 + 1;

  Decompress jpeg_{};
  EncodedImage image_;
  PooledBuffer memory_;
};

}  // namespace

std::unique_ptr<ImageCodec> make_jpeg_codec() {
  return std::make_unique<JpegCodec>();
}

}  // namespace tfrfast

#else

namespace tfrfast {

std::unique_ptr<ImageCodec> make_jpeg_codec() {
  return nullptr;
}

}  // namespace tfrfast

#endif
