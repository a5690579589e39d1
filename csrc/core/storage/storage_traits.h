// The costs of reading from a storage, from which readers choose their requests.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tfrfast {

struct StorageTraits {
  // Whether each request waits for a round trip, so that every read should be announced. Otherwise
  // reading a byte costs little, and nothing once the system has the byte in memory.
  bool is_remote = false;
  // Reading a gap of this many unwanted bytes costs no more than skipping the gap.
  std::size_t gap_bytes = 0;
  // The best size of a request if all bytes are read in order.
  std::size_t request_bytes = 0;
  // Up to this many requests at once are faster than fewer.
  unsigned requests_at_once = 1;
  // Announcing more bytes than this may push out the first announcements.
  std::uint64_t max_announced_bytes = 0;
};

}  // namespace tfrfast
