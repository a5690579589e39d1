// What reading from a storage costs, for readers to choose what they ask it for.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tfrfast {

struct StorageTraits {
  // Whether each request waits for a round trip, so that whatever will be read should be announced.
  // Else looking at a byte costs little, and nothing once the system has it in memory.
  bool is_far = false;
  // Reading so many bytes that nobody wants costs no more than skipping them.
  std::size_t gap_bytes = 0;
  // What one request of many asks for where all bytes are wanted in order.
  std::size_t request_bytes = 0;
  // So many requests at once are faster than fewer.
  unsigned requests_at_once = 1;
  // What is announced beyond this may push out what was announced first.
  std::uint64_t max_announced_bytes = 0;
};

}  // namespace tfrfast
