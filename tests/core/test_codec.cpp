#include "core/codec/codec.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/codec/deflater.h"
#include "core/codec/zlib.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

using Bytes = std::vector<std::uint8_t>;

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::string member(const Codec& codec, const std::string& content) {
  Deflater deflater(codec.window_bits, 6);
  const auto out = deflater.deflate(bytes_of(content));
  return {out.begin(), out.end()};
}

// Returns the size of the header of `file`; -1 if the header is refused.
int header_of(const Codec& codec, const std::string& file) {
  Bytes header;
  const bool read = codec.read_header(header, [&](std::size_t count) {
    if (header.size() + count > file.size()) return false;
    const auto more = bytes_of(file).subspan(header.size(), count);
    header.insert(header.end(), more.begin(), more.end());
    return true;
  });
  return read ? static_cast<int>(header.size()) : -1;
}

Compression detected(const std::string& bytes) {
  const TemporaryFolder folder;
  const std::string path = folder / "shard";
  write_file(path, bytes);
  return detect_compression(*StoredFile::open(path));
}

const std::string kGzipHead("\x1f\x8b\x08", 3);

}  // namespace

TEST_CASE("codec: every entry of the table is found by its number and has a name of its own") {
  for (const Codec& codec : codecs()) {
    CHECK(&codec_of(codec.compression) == &codec);
    CHECK(compression_name(codec.compression) == codec.name);
    CHECK(codec.trailer_bytes <= kMaxTrailerBytes);
    CHECK(std::count_if(codecs().begin(), codecs().end(), [&](const Codec& other) {
            return std::string(other.name) == codec.name;
          }) == 1);
  }
  CHECK(std::string(compression_name(Compression::none)).empty());
}

TEST_CASE("codec: a member that is written is detected, and its header and trailer hold") {
  for (const Codec& codec : codecs()) {
    CAPTURE(codec.name);
    for (const std::string& content : {std::string(), std::string("x"), std::string(70'000, 'y')}) {
      const std::string file = member(codec, content);
      CHECK(detected(file) == codec.compression);
      CHECK(header_of(codec, file) == static_cast<int>(codec.written_header_bytes));
      const Checksum sum = codec.add_to_checksum(codec.first_checksum, bytes_of(content));
      const auto trailer = bytes_of(file).last(codec.trailer_bytes);
      CHECK(codec.trailer_holds(trailer.data(), sum, content.size()));
      CHECK_FALSE(codec.trailer_holds(trailer.data(), sum ^ 1, content.size()));
    }
  }
}

TEST_CASE("codec: a header that is cut anywhere is refused") {
  for (const Codec& codec : codecs()) {
    const std::string file = member(codec, "content");
    for (std::size_t bytes = 0; bytes < codec.written_header_bytes; ++bytes) {
      CHECK(header_of(codec, file.substr(0, bytes)) == -1);
    }
  }
}

TEST_CASE("codec: GZIP's optional fields") {
  const Codec& gzip = codec_of(Compression::gzip);
  const auto head = [](unsigned flags) {
    return kGzipHead + static_cast<char>(flags) + std::string(6, '\0');
  };
  CHECK(header_of(gzip, head(0)) == 10);
  CHECK(header_of(gzip, head(4) + std::string("\x03\0abc", 5)) == 15);
  CHECK(header_of(gzip, head(4) + std::string("\x04\0abc", 5)) == -1);
  CHECK(header_of(gzip, head(8) + std::string("name\0", 5)) == 15);
  CHECK(header_of(gzip, head(8 | 16) + std::string("name\0comment\0", 13)) == 23);
  CHECK(header_of(gzip, head(8) + std::string(1 << 20, 'n')) == -1);
  for (const unsigned reserved : {0x20u, 0x40u, 0x80u})
    CHECK(header_of(gzip, head(reserved)) == -1);
  const Checksum crc = gzip.add_to_checksum(gzip.first_checksum, bytes_of(head(2)));
  const char low = static_cast<char>(crc & 0xff), high = static_cast<char>(crc >> 8 & 0xff);
  CHECK(header_of(gzip, head(2) + low + high) == 12);
  CHECK(header_of(gzip, head(2) + static_cast<char>(low ^ 1) + high) == -1);
}

TEST_CASE("codec: ZLIB's header says deflate, a window, and that they belong together") {
  const Codec& zlib = codec_of(Compression::zlib);
  CHECK(header_of(zlib, "\x78\x9c") == 2);
  CHECK(header_of(zlib, "\x78\x9d") == -1);               // not a multiple of 31
  CHECK(header_of(zlib, "\x79\x9c") == -1);               // not deflate
  CHECK(header_of(zlib, std::string("\x88\x1c")) == -1);  // a window of 64 KiB
  CHECK(header_of(zlib, "\x78\xbb") == -1);               // a preset dictionary
}

TEST_CASE("codec: what is plain is not taken for compressed") {
  CHECK(detected("") == Compression::none);
  CHECK(detected("\x1f\x8b") == Compression::none);
  CHECK(detected("lorem ipsum dolor") == Compression::none);
  // A plain record of 0x9c78 bytes, whose checksum is damaged, begins like ZLIB.
  CHECK(detected(std::string("\x78\x9c\0\0\0\0\0\0crc.", 12)) == Compression::none);
  CHECK(detected(std::string("\x78\x9c\0\0\0\0\x01\0crc.", 12)) == Compression::zlib);
}

TEST_CASE("codec: where a member may begin is found, and only there") {
  const Codec& gzip = codec_of(Compression::gzip);
  const auto places = [&](const std::string& bytes) {
    std::vector<std::size_t> found;
    const std::uint8_t* const begin = bytes_of(bytes).data();
    const std::uint8_t* const end = begin + bytes.size();
    for (const std::uint8_t* at = gzip.find_member(begin, end); at != end;
         at = gzip.find_member(at + 1, end)) {
      found.push_back(static_cast<std::size_t>(at - begin));
    }
    return found;
  };
  const std::string mark = kGzipHead + '\0';
  CHECK(places("").empty());
  CHECK(places(kGzipHead).empty());  // too few bytes to tell
  CHECK(places(mark) == std::vector<std::size_t>{0});
  CHECK(places("ab" + mark + kGzipHead + mark) == std::vector<std::size_t>{2, 6, 9});
  CHECK(places(kGzipHead + '\xe0').empty());  // flags that do not exist
  CHECK(places("\x1f\x1f\x8b\x8b" + mark) == std::vector<std::size_t>{4});
}
