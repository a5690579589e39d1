// Resizes pictures of hostile sizes. Every kernel gives the same bytes, which are those of exact
// weights to one level, however many pixels become one.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "../core/exact_resize.h"
#include "core/image/resize.h"
#include "memory_file.h"

using namespace tfrfast;

namespace {

constexpr std::uint32_t kMostPixels = 1 << 16;
constexpr std::uint32_t kMostResult = 64;

// From 1 to `most`, small and large numbers alike.
std::uint32_t side(const std::uint8_t* bytes, std::uint32_t most) {
  const std::uint32_t number = bytes[0] | std::uint32_t{bytes[1]} << 8;
  return std::min((number >> bytes[2] % 16) + 1, most);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kHeader = 16;
  if (size <= kHeader) return 0;
  const std::uint8_t choices = data[0];
  ImageSpec spec;
  spec.channels = (choices & 1) != 0 ? 1 : 3;
  spec.resize = (choices & 2) != 0 ? ResizeKind::area : ResizeKind::bilinear;
  spec.is_float = (choices & 4) != 0;
  spec.channels_first = (choices & 8) != 0;
  const bool flipped = (choices & 16) != 0;
  const Turn turn = turn_of(1 + choices / 32);
  Pixels pixels;
  pixels.channels = spec.channels == 1 ? 1 : kColorChannels;
  pixels.height = side(data + 1, kMostPixels);
  pixels.width = side(data + 4, kMostPixels / pixels.height);
  spec.height = side(data + 7, kMostResult);
  spec.width = side(data + 10, kMostResult);
  // A window as at a scale of 1/8.
  pixels.window_top = data[13] % (8 * pixels.height) / 8.0;
  pixels.window_left = data[14] % (8 * pixels.width) / 8.0;
  pixels.window_height = pixels.height - pixels.window_top;
  pixels.window_width = pixels.width - pixels.window_left;
  std::vector<std::uint8_t> source(std::size_t{pixels.height} * pixels.width * pixels.channels);
  for (std::size_t i = 0; i < source.size(); ++i) {
    source[i] =
        static_cast<std::uint8_t>(data[kHeader + i % (size - kHeader)] ^ (i * data[15] >> 8));
  }
  pixels.data = source.data();
  std::vector<std::uint8_t> expected;
  for (const ResizeKernel& kernel : resize_kernels()) {
    if (!kernel.supported()) continue;
    std::vector<std::uint8_t> found(spec.result_bytes());
    Resizer(kernel).resize(pixels, spec, turn, flipped, found.data());
    if (expected.empty()) {
      require(largest_error(pixels, spec, turn, flipped, found) <= 1);
      expected = std::move(found);
    } else {
      require(found == expected);
    }
  }
  return 0;
}
