// The result of take, skip, shard, shuffle, repeat and batch on a source of records.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/order/order.h"
#include "core/order/progression.h"

namespace tfrfast {

inline constexpr std::int64_t kEndless = std::numeric_limits<std::int64_t>::max();

// Immutable once filled in. Any number of threads.
struct Sequence {
  static constexpr EncodedKind kEncoding{"sequence", "tfSQ"};

  Progression records;                 // records of the source
  std::shared_ptr<const Order> order;  // order of `records`
  Progression positions;               // positions of `order` that make an epoch
  bool reshuffles = true;              // each epoch has its own order
  std::int64_t epochs = 1;             // -1 for endless
  std::int64_t batch_rows = 0;         // 0: no batches
  bool batch_ends_with_epoch = false;  // repeat came after batch
  bool drop_remainder = false;

  // Whether two sequences deal the same order in the same way.
  bool operator==(const Sequence&) const = default;

  std::string encode() const;
  static Sequence decode(std::string_view encoded);  // throws Error(invalid)

  // The same calls on a source with other files. The differences of `firsts`, which begins with 0,
  // are the files' numbers of records.
  Sequence over(const std::vector<std::int64_t>& firsts) const;

  // The number of batches, or kEndless.
  std::int64_t batch_count() const noexcept;

  // The record numbers of batch `step`. Empty if the batch does not exist.
  std::vector<std::int64_t> batch(std::uint64_t seed, std::int64_t step) const;
};

// Returns size * epochs, or kEndless if the product is larger or epochs is -1.
std::int64_t in_epochs(std::int64_t size, std::int64_t epochs) noexcept;

}  // namespace tfrfast
