#include "core/shard/header_search.h"

#include <algorithm>
#include <bit>

#include "core/base/bytes.h"

namespace tfrfast {
namespace {

constexpr std::size_t kLengthBytes = sizeof(std::uint64_t);

}  // namespace

HeaderSearch search_header(const ShardWindow& window, std::uint64_t from) noexcept {
  const std::uint64_t window_end = std::min(window.end, window.shard_bytes);
  if (from >= window_end || window_end - from < kHeaderBytes) return {false, from, 0};
  const std::uint64_t left = window.shard_bytes - from;
  const std::uint8_t* const bytes = window.bytes;
  const auto end = static_cast<std::size_t>(window_end - window.begin);
  const std::size_t tried_end = end - kHeaderBytes + 1;  // from here on no header fits
  if (left < kFrameOverhead) return {false, window.begin + tried_end, 0};

  // A frame fits only if this many upper bytes of its length are zeros.
  const std::size_t zeros = static_cast<std::size_t>(std::countl_zero(left - kFrameOverhead)) / 8;
  for (auto at = static_cast<std::size_t>(from - window.begin); at < tried_end;) {
    // A nonzero byte rules out all places where the byte would be among those upper bytes. The
    // first two bytes are tested one by one, because their branches are predictable: the processor
    // continues at the next place without waiting for the load.
    if (zeros > 0 && bytes[at + kLengthBytes - 1] != 0) {
      at += zeros;
      continue;
    }
    if (zeros > 1 && bytes[at + kLengthBytes - 2] != 0) {
      at += zeros - 1;
      continue;
    }
    const auto length = load_little_endian<std::uint64_t>(bytes + at);
    if (length == 0) {
      // The CRC of length 0 does not begin with a zero, so a header can only begin where the zeros
      // end.
      const std::uint8_t* zeros_end = skip_zeros(bytes + at + kLengthBytes, bytes + end);
      at = static_cast<std::size_t>(zeros_end - bytes) - kLengthBytes;
      if (at >= tried_end) break;
    } else if (zeros > 0 && length >> (8 * (kLengthBytes - zeros)) != 0) {
      const auto highest = static_cast<std::size_t>(63 - std::countl_zero(length)) / 8;
      at += highest - (kLengthBytes - zeros) + 1;
      continue;
    }
    const FrameHeader header = decode_header(bytes + at);
    const std::uint64_t place = window.begin + at;
    const std::uint64_t left_here = window.shard_bytes - place;
    if (left_here >= kFrameOverhead && header.payload_bytes <= left_here - kFrameOverhead &&
        header_is_intact(header)) {
      return {true, place, header.payload_bytes};
    }
    ++at;
  }
  return {false, window.begin + tried_end, 0};
}

}  // namespace tfrfast
