// Where the next intact header is, whatever bytes come before it. Pure, like framing.
#pragma once

#include <cstdint>

#include "core/shard/framing.h"

namespace tfrfast {

struct HeaderSearch {
  bool found = false;
  // Of the header. If there is none: every place before this one was tried, and a header that began
  // here would not end in the window.
  std::uint64_t at = 0;
  std::uint64_t payload_bytes = 0;
};

// The first place in the window, at or after `from`, with a header whose CRC holds and whose frame
// ends within `window.shard_bytes`. Takes less than a nanosecond a byte of zeros, of random bytes
// and of most others: a length that fits has zeros at its upper end, and its CRC is not zeros.
// Owns nothing and calls nothing that owns: safe inside run_guarded().
HeaderSearch search_header(const ShardWindow& window, std::uint64_t from) noexcept;

}  // namespace tfrfast
