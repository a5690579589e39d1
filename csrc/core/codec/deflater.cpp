#include "core/codec/deflater.h"

#include <algorithm>
#include <climits>
#include <new>

namespace tfrfast {
namespace {

constexpr int kDeflated = 8, kMemoryLevel = 9, kDefaultStrategy = 0;
constexpr std::size_t kOutputBytes = 64 << 10;

}  // namespace

Deflater::Deflater(int window_bits, int level) : zlib_(zlib()) {
  if (zlib_.deflate_init(&stream_, level, kDeflated, window_bits, kMemoryLevel, kDefaultStrategy,
                         zlib_.version(), sizeof stream_) != kZOk) {
    throw std::bad_alloc();
  }
}

Deflater::~Deflater() {
  zlib_.deflate_end(&stream_);
}

std::span<const std::uint8_t> Deflater::deflate(std::span<const std::uint8_t> bytes) {
  zlib_.deflate_reset(&stream_);
  std::size_t done = 0;
  // The same spaces for the same bytes, whatever came before: at level 0, they decide where a block
  // ends.
  std::size_t limit = kOutputBytes;
  for (int answer = kZOk; answer != kZStreamEnd;) {
    if (done == limit) limit *= 2;
    if (out_.size() < limit) out_.resize(limit);
    const auto in = static_cast<unsigned>(std::min<std::size_t>(bytes.size(), UINT_MAX));
    const auto space = static_cast<unsigned>(std::min<std::size_t>(limit - done, UINT_MAX));
    stream_.next_in = bytes.data();
    stream_.avail_in = in;
    stream_.next_out = out_.data() + done;
    stream_.avail_out = space;
    answer = zlib_.deflate(&stream_, in == bytes.size() ? kZFinish : kZNoFlush);
    bytes = bytes.subspan(in - stream_.avail_in);
    done += space - stream_.avail_out;
  }
  return {out_.data(), done};
}

}  // namespace tfrfast
