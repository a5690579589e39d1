// Decides how far ahead the batches of a remote storage are announced. Each request is a round
// trip, so many requests must run at once, even if batches are small.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace tfrfast {

// Batches that read the same blocks are announced together, up to this many bytes of batches, so
// that each block is one request.
inline constexpr std::uint64_t kTogetherBytes = std::uint64_t{128} << 20;

struct RemoteAhead {
  std::uint64_t batches = 0;      // announce batches this far ahead
  std::uint64_t together = 1;     // announce this many batches at once, because they share requests
  std::uint64_t batch_bytes = 1;  // approximate size of a batch, at least 1
};

// `batch_count` must be at least 1, and records have `mean_record_bytes` on average. Calls
// `records_of(batch)` for the first batches, up to `together_bytes` of them. Their record numbers
// reveal whether records come in order, come from the same blocks, or lie apart.
RemoteAhead remote_ahead(
    std::uint64_t mean_record_bytes, std::uint64_t batch_count,
    const std::function<std::vector<std::int64_t>(std::uint64_t batch)>& records_of,
    std::uint64_t together_bytes = kTogetherBytes);

}  // namespace tfrfast
