// Finds the next intact header among arbitrary bytes. Does no I/O and throws nothing, like
// framing.h.
#pragma once

#include <cstdint>

#include "core/shard/framing.h"

namespace tfrfast {

struct HeaderSearch {
  bool found = false;
  // The place of the header. If no header was found, the first place that was not tried, because a
  // header there would reach past the window.
  std::uint64_t at = 0;
  std::uint64_t payload_bytes = 0;
};

// Returns the first place in the window, at or after `from`, with a header whose CRC is right and
// whose frame ends within `window.shard_bytes`. Takes less than a nanosecond per byte for zeros,
// random bytes and most other bytes: a length that fits has zeros in its upper bytes, and the CRC
// of length 0 does not begin with a zero. Needs no destructors: safe inside run_guarded().
HeaderSearch search_header(const ShardWindow& window, std::uint64_t from) noexcept;

}  // namespace tfrfast
