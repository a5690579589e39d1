#include "core/codec/codec.h"

#include <algorithm>
#include <array>

#include "core/codec/wrappers.h"
#include "core/shard/framing.h"

namespace tfrfast {

std::span<const Codec> codecs() noexcept {
  static const std::array kCodecs{kGzipCodec, kZlibCodec};
  return kCodecs;
}

const Codec& codec_of(Compression compression) noexcept {
  const auto all = codecs();
  return *std::find_if(all.begin(), all.end(), [compression](const Codec& codec) {
    return codec.compression == compression;
  });
}

const char* compression_name(Compression compression) noexcept {
  return compression == Compression::none ? "" : codec_of(compression).name;
}

Compression detect_compression(const StoredFile& file) {
  std::uint8_t bytes[kHeaderBytes] = {};
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(file.bytes(), sizeof bytes));
  file.read(0, bytes, count);
  if (count == kHeaderBytes && header_is_intact(decode_header(bytes))) return Compression::none;
  for (const Codec& codec : codecs()) {
    if (codec.may_begin({bytes, count})) return codec.compression;
  }
  return Compression::none;
}

}  // namespace tfrfast
