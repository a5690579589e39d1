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

// Immutable once it is made, any number of threads.
struct Sequence {
  static constexpr EncodedKind kEncoding{"sequence", "tfSQ"};

  Progression records;                 // of the source
  std::shared_ptr<const Order> order;  // of as many records
  Progression positions;               // of the order, that make an epoch
  bool reshuffles = true;              // each epoch has its own order
  std::int64_t epochs = 1;             // -1 for endless
  std::int64_t batch_rows = 0;         // 0: no batches
  bool batch_ends_with_epoch = false;  // repeat came after batch
  bool drop_remainder = false;

  // Whether both deal one order in the same way.
  bool operator==(const Sequence&) const = default;

  std::string encode() const;
  static Sequence decode(std::string_view encoded);  // throws Error(invalid)

  // The same calls on a source of other files. Their numbers of records are the differences of
  // `firsts`, which begins with 0.
  Sequence over(const std::vector<std::int64_t>& firsts) const;

  // How many batches it has, or kEndless.
  std::int64_t batch_count() const noexcept;

  // The record numbers of batch `step`; none for one that does not exist.
  std::vector<std::int64_t> batch(std::uint64_t seed, std::int64_t step) const;
};

// size * epochs, which is kEndless if that is more, or if there are -1 epochs.
std::int64_t in_epochs(std::int64_t size, std::int64_t epochs) noexcept;

}  // namespace tfrfast
