// Finds the next intact header among bytes that may be anything. No I/O and no throwing, as in
// framing.h.
#pragma once

#include <cstdint>

#include "core/shard/framing.h"

namespace tfrfast {

struct HeaderSearch {
  bool found = false;
  // Where the header begins. If none was found, the first place that was not tried, because a
  // header there would not end within the window.
  std::uint64_t at = 0;
  std::uint64_t payload_bytes = 0;
};

// The first place in the window, at or after `from`, with a header whose CRC holds and whose frame
// ends within `window.shard_bytes`. Takes less than a nanosecond a byte for zeros, for random bytes
// and for most others, because a length that fits has zeros in its upper bytes, and the CRC of the
// length 0 does not begin with a zero. Needs no destructors: safe inside run_guarded().
HeaderSearch search_header(const ShardWindow& window, std::uint64_t from) noexcept;

}  // namespace tfrfast
