// Windows of images, the loops of resizing, and images that are damaged or large.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

#include "core/base/error.h"
#include "core/example/sequence.h"
#include "core/image/exif.h"
#include "core/image/image_decoder.h"
#include "exact_resize.h"

using namespace tfrfast;

namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes golden(const std::string& name) {
  std::ifstream file(std::string(TFRFAST_GOLDEN_FOLDER) + "/images/" + name, std::ios::binary);
  REQUIRE(file);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

ImageSpec spec_of(std::uint32_t height, std::uint32_t width) {
  ImageSpec spec;
  spec.height = height;
  spec.width = width;
  return spec;
}

ImageSpec random_spec() {
  ImageSpec spec = spec_of(224, 224);
  spec.crop = CropKind::random;
  spec.min_area = kFixedOne / 12;
  spec.min_ratio = 3 * (kFixedOne / 4);
  spec.max_ratio = 4 * (kFixedOne / 3);
  spec.flips = true;
  return spec;
}

std::string problem_of(const ImageSpec& spec, const Bytes& image) {
  ImageDecoder decoder(spec);
  if (!decoder.begin(image, 0)) return decoder.problem();
  Bytes out(decoder.result_bytes());
  return decoder.finish(out.data()) ? "" : decoder.problem();
}

}  // namespace

TEST_CASE("a random window is the same on every machine and in every version") {
  const ImageSpec spec = random_spec();
  const std::uint64_t draw = image_draw(7, 1, 1000, 0);
  CHECK(draw == 0xdc735072e24a7bcf);
  CHECK(choose_crop(spec, 375, 500, draw) == Crop{48, 192, 162, 142, false});
  CHECK(choose_crop(spec, 375, 500, image_draw(7, 1, 1001, 0)) == Crop{29, 162, 247, 292, true});
  CHECK(choose_crop(spec, 375, 500, image_draw(7, 2, 1000, 0)) == Crop{10, 62, 335, 284, true});
  // No window of these shapes has the area, so the middle is taken.
  CHECK(choose_crop(spec, 2000, 10, draw) == Crop{993, 0, 13, 10, false});
}

TEST_CASE("a window lies within its image, and windows reach every corner") {
  const ImageSpec spec = random_spec();
  bool top = false, bottom = false, flipped = false, upright = false;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const auto height = static_cast<std::uint32_t>(1 + i * 7 % 50);
    const auto width = static_cast<std::uint32_t>(1 + i * 11 % 50);
    const Crop crop = choose_crop(spec, height, width, image_draw(0, 0, i, 0));
    REQUIRE(crop.height >= 1);
    REQUIRE(crop.width >= 1);
    REQUIRE(crop.top + crop.height <= height);
    REQUIRE(crop.left + crop.width <= width);
    top = top || (crop.height < height && crop.top == 0);
    bottom = bottom || (crop.height < height && crop.top + crop.height == height);
    flipped = flipped || crop.flipped;
    upright = upright || !crop.flipped;
  }
  CHECK(top);
  CHECK(bottom);
  CHECK(flipped);
  CHECK(upright);
}

TEST_CASE("the middle has the shape of the result") {
  ImageSpec spec = spec_of(100, 200);
  spec.crop = CropKind::center;
  CHECK(choose_crop(spec, 300, 300, 0) == Crop{75, 0, 150, 300, false});
  CHECK(choose_crop(spec, 300, 1000, 0) == Crop{0, 200, 300, 600, false});
}

TEST_CASE(
    "every kernel gives the same bytes, to one level those of exact weights, at every scale") {
  struct Sizes {
    std::uint32_t height, width, result_height, result_width;
  };
  // Up to 30,000 pixels become one.
  constexpr Sizes kSizes[] = {{37, 53, 11, 13}, {37, 53, 90, 70}, {37, 53, 37, 53},
                              {250, 251, 1, 1}, {999, 50, 2, 3},  {49, 300, 1, 300},
                              {30000, 2, 1, 2}, {2, 30000, 9, 5}};
  int number = 0;
  for (const Sizes& sizes : kSizes) {
    const std::uint32_t height = sizes.height, width = sizes.width;
    const std::uint32_t result_height = sizes.result_height, result_width = sizes.result_width;
    for (int form = 0; form < 16; ++form, ++number) {
      CAPTURE(height);
      CAPTURE(result_height);
      CAPTURE(form);
      ImageSpec spec = spec_of(result_height, result_width);
      spec.resize = (form & 1) != 0 ? ResizeKind::area : ResizeKind::bilinear;
      spec.channels = (form & 2) != 0 ? 1 : 3;
      spec.is_float = (form & 4) != 0;
      spec.channels_first = (form & 8) != 0;
      const std::uint32_t values = spec.channels == 1 ? 1 : kColorChannels;
      std::vector<std::uint8_t> bytes(std::size_t{height} * width * values);
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        const std::uint8_t noise = static_cast<std::uint8_t>(i * i * 31 >> 3);
        const bool is_rare = i / values % 300 == 7;
        bytes[i] = number % 3 == 0 ? noise : is_rare == (number % 3 == 1) ? 255 : 0;
      }
      const Turn turn = turn_of(1 + number % 8);
      const Pixels source{bytes.data(), height, width,         values,
                          0.5,          0.25,   height - 0.75, width - 0.375};
      Bytes expected;
      for (const ResizeKernel& kernel : resize_kernels()) {
        if (!kernel.supported()) continue;
        CAPTURE(kernel.name);
        Bytes found(spec.result_bytes());
        Resizer(kernel).resize(source, spec, turn, true, found.data());
        if (expected.empty()) {
          CHECK(largest_error(source, spec, turn, true, found) <= 1);
          expected = found;
        }
        CHECK(found == expected);
      }
    }
  }
}

TEST_CASE("EXIF that is cut off or out of bounds states no orientation") {
  const Bytes turned = golden("turned_6.jpg");
  const std::string text(turned.begin(), turned.end());
  const std::size_t start = text.find("Exif");
  REQUIRE(start != std::string::npos);
  const EncodedImage exif = EncodedImage(turned).subspan(start, 64);
  CHECK(exif_orientation(exif) == 6);
  for (std::size_t bytes = 0; bytes < 20; ++bytes) {
    CHECK(exif_orientation(exif.first(bytes)).value_or(1) == 1);
  }
}

TEST_CASE("a damaged image is said to be so, and reads nothing outside it") {
  if (!has_image_codecs()) return;
  const ImageSpec spec = spec_of(20, 30);
  for (const char* const name : {"subsampled.jpg", "progressive.jpg", "color.png"}) {
    CAPTURE(name);
    const Bytes whole = golden(name);
    CHECK(problem_of(spec, whole).empty());
    for (std::size_t bytes = 0; bytes + 16 < whole.size(); bytes += 7) {
      CAPTURE(bytes);
      CHECK_FALSE(problem_of(spec, Bytes(whole.begin(), whole.begin() + bytes)).empty());
    }
  }
  CHECK(problem_of(spec, {}) == "the string is empty");
  CHECK(problem_of(spec, {'G', 'I', 'F', '8'}) == "it is neither a JPEG nor a PNG");
}

TEST_CASE("a record of sequences holds no images") {
  FeatureSpec spec;
  spec.name = "x";
  spec.layout = &kRaggedLayout;
  spec.type = ValueType::image;
  spec.image = ImageSpec();
  const auto images = std::make_shared<const FeatureSchema>(std::vector<FeatureSpec>{spec});
  const auto nothing = std::make_shared<const FeatureSchema>(std::vector<FeatureSpec>{});
  CHECK_THROWS_AS(SequenceDecoder(images, nothing), Error);
  CHECK_THROWS_AS(SequenceDecoder(nothing, images), Error);
}

TEST_CASE("a build without the codecs names the packages to install") {
  if (has_image_codecs()) return;
  CHECK_THROWS_WITH_AS(ImageDecoder(spec_of(2, 2)), doctest::Contains("apt-get install libjpeg62"),
                       Error);
}

TEST_CASE("an image of more pixels than allowed takes no memory") {
  if (!has_image_codecs()) return;
  ImageSpec spec = spec_of(20, 30);
  spec.max_pixels = 36 * 52 - 1;
  CHECK(problem_of(spec, golden("color.png")) == "it has 36 x 52 pixels, and max_pixels is 1871");
  Bytes giant = golden("color.png");
  std::fill(giant.begin() + 16, giant.begin() + 24, std::uint8_t{0x7f});
  CHECK(problem_of(spec_of(20, 30), giant).find("max_pixels") != std::string::npos);
}

TEST_CASE("a damaged image is grey if that is asked for, and without a size empty") {
  if (!has_image_codecs()) return;
  Bytes cut = golden("color.png");
  cut.resize(cut.size() / 2);
  for (const std::uint32_t size : {2u, 0u}) {
    ImageSpec spec = spec_of(size, size);
    spec.grey_if_damaged = true;
    ImageDecoder decoder(spec);
    Bytes out(36 * 52 * 3);
    for (const Bytes& damaged : {Bytes{1, 2, 3}, cut}) {
      REQUIRE(decoder.begin(damaged, 0));
      REQUIRE(decoder.finish(out.data()));
      CHECK(decoder.crop().damaged == 1);
      CHECK(decoder.result_bytes() == size * size * 3);
      CHECK(std::count(out.begin(), out.begin() + decoder.result_bytes(), 128) == size * size * 3);
    }
    REQUIRE(decoder.begin(golden("color.png"), 0));
    CHECK(decoder.crop().damaged == 0);
    CHECK(decoder.result_bytes() == (size == 0 ? out.size() : size * size * 3));
  }
}
