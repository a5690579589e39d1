// What reading from a storage costs, so that readers can choose their requests.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tfrfast {

struct StorageTraits {
  // Whether each request waits for a round trip, so that everything should be announced before it
  // is read. Otherwise looking at a byte costs little, and nothing once the system has it in
  // memory.
  bool is_remote = false;
  // A gap of this many unwanted bytes costs no more to read than to skip.
  std::size_t gap_bytes = 0;
  // How much each request should ask for where all bytes are read in order.
  std::size_t request_bytes = 0;
  // Up to this many requests at once are faster than fewer.
  unsigned requests_at_once = 1;
  // To announce more than this may push out what was announced first.
  std::uint64_t max_announced_bytes = 0;
};

}  // namespace tfrfast
