// How far ahead the batches of a far storage are announced. Each request there is a round trip, so
// many have to be under way, though batches may be small.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace tfrfast {

// Batches that draw on the same blocks are announced together, so that each block is one request:
// up to so many bytes of batches.
inline constexpr std::uint64_t kTogetherBytes = std::uint64_t{128} << 20;

struct FarAhead {
  std::uint64_t batches = 0;      // so many before they are needed
  std::uint64_t together = 1;     // so many at once, because they share requests
  std::uint64_t batch_bytes = 1;  // about as many as a batch has, at least 1
};

// For `batch_count` batches, which is at least one, of records of `mean_record_bytes` on average.
// `records_of(batch)` is called for the first ones, up to `together_bytes` of them, since what they
// hold tells: whether records come in order, or from the same blocks, or lie apart.
FarAhead far_ahead(std::uint64_t mean_record_bytes, std::uint64_t batch_count,
                   const std::function<std::vector<std::int64_t>(std::uint64_t batch)>& records_of,
                   std::uint64_t together_bytes = kTogetherBytes);

}  // namespace tfrfast
